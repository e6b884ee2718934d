"""What a second-order solver may ask about the samples, wherever they are stored."""
