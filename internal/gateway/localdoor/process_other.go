//go:build !linux && !darwin

package localdoor

import "os"

// ownerOf knows nothing here: the socket's directory and the key decide.
func ownerOf(int) (uid int, err error) { return os.Geteuid(), nil }

func processOf(int) (int, error) { return 0, ErrKin }

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
