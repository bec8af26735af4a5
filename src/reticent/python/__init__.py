"""The classes and functions of the Python interface, in the manner of scikit-learn."""
