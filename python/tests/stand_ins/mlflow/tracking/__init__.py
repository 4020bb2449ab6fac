"""As in mlflow."""
