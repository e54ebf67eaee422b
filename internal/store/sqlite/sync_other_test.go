//go:build !linux

package sqlite

import "errors"

// syncsMain is for a system whose calls strace can count.
func syncsMain(*Store) error { return errors.New("not on this system") }
