"""The pages of runs and studies, and the pictures of disciplines."""
