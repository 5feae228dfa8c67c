"""Models as the command line offers them: options in; feed, engine and figures out."""
