// Package memory is the governed memory: what is believed, and on what support.
package memory
