"""What is trained, used: recommending, continuing texts, finding near vectors. Thin layers over engines and tables."""
