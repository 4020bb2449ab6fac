"""As in gymnasium."""
