"""What is answered before a library is loaded."""
