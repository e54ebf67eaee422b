//go:build !linux && !darwin

package localdoor

import "net"

func peerOf(*net.UnixConn) (int, bool) { return 0, false }

func ancestry(int) ([]int, error) { return nil, ErrKin }

func startedAt(int) string { return "" }

func startOf(int) (start, among string) { return "", "" }

func parentOf(int) int { return 0 }

func sameProgram(int) bool { return false }

// loose is not known here.
func loose([]int, int) bool { return false }

// strayed is not known here.
func strayed([]int, origin) bool { return false }

// originOf is not known here.
func originOf(int) (origin, error) { return origin{}, ErrKin }

// holders are not known here.
func holders([]ends) (pids []int, closed []ends) { return nil, nil }
