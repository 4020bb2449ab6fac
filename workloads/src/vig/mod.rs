//! ViG (vision graph network): study 3, images as graphs of pixels.
