//go:build !linux

package main

import "testing"

func TestTerminal(t *testing.T) { t.Skip("pseudo-terminals are opened on Linux only") }
