"""Files and command lines of strangers: changed copies of good ones, which are read, or refused by name. See __main__.py."""
