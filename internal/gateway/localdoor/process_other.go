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
