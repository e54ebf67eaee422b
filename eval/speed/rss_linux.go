package main

import (
	"os"
	"syscall"
)

// maxRSS is the most memory that an ended process had resident, in MB.
func maxRSS(p *os.ProcessState) float64 {
	return float64(p.SysUsage().(*syscall.Rusage).Maxrss) / 1024
}
