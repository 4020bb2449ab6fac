//! Image classification: CIFAR-10 and images like it, loaded as batches.
