"""The record server's configuration: flags, keys and resolv.conf.

In: the command line, the configuration keys, /etc/resolv.conf.
Out: checked options, and the settings in force as they change.
Owns: the last good configuration.
Never: applies a setting.
"""
