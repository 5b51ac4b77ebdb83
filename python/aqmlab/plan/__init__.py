"""What a study is going to run: its points, one machine's part of them, and how exactly."""
