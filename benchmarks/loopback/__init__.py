"""What the drive benchmark loads and compares with: a loopback server and other generators, each in its own process."""
