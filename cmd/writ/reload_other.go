//go:build !unix

package main

import "os"

// reloadSignals: there is none; writ reload is the way.
var reloadSignals []os.Signal
