"""The leak hunt: run a method in worlds that differ only in what it must not know, and compare what it sends and answers."""
