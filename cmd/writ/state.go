package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/statedir"
)

// stateDir returns the directory writ keeps its state in, after it was found to
// be nobody else's.
func stateDir(flag string) (string, error) {
	dir, err := madeState(flag)
	if err == nil {
		err = checkState(dir)
	}
	return dir, err
}

// checkState refuses a state directory that is not its user's alone.
func checkState(dir string) error {
	if err := statedir.Check(dir); err != nil {
		return exposed(err, "the state directory cannot be read")
	}
	return nil
}

// exposed is the error of a file that is not the user's own, with the command
// that mends it; any other error is told as otherwise.
func exposed(err error, otherwise string) error {
	if e, ok := errors.AsType[*private.Error](err); ok {
		return &cli.Exit{Code: cli.ExitConfig, Err: err, Hint: e.Mend}
	}
	return cli.Fail(cli.ExitIO, "", "%s", otherwise)
}

// madeState makes the state directory, with mode 0700.
func madeState(flag string) (string, error) {
	dir, err := statePath(flag)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); errors.Is(err, fs.ErrPermission) {
		if err := private.Another(dir); err != nil {
			return "", exposed(err, "")
		}
		return "", cli.Fail(cli.ExitIO, "writ … --state DIR", "the state directory is not open to this process: allow it to read and write %q", dir)
	} else if err != nil {
		return "", cli.Fail(cli.ExitIO, "writ … --state DIR", "the state directory %q cannot be made: %w", dir, cmp.Or(errors.Unwrap(err), err))
	}
	return dir, nil
}

// statePath is where writ keeps its state: the flag's value,
// $XDG_STATE_HOME/writ, or the platform's equivalent.
func statePath(flag string) (string, error) {
	dir := flag
	if dir == "" {
		base := os.Getenv("XDG_STATE_HOME")
		if base == "" || !filepath.IsAbs(base) {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", cli.Fail(cli.ExitConfig, "writ … --state DIR", "no home directory to keep the state in")
			}
			switch runtime.GOOS {
			case "darwin":
				base = filepath.Join(home, "Library", "Application Support")
			case "windows":
				if base, err = os.UserCacheDir(); err != nil {
					return "", cli.Fail(cli.ExitConfig, "writ … --state DIR", "no directory to keep the state in")
				}
			default:
				base = filepath.Join(home, ".local", "state")
			}
		}
		dir = filepath.Join(base, "writ")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", cli.Fail(cli.ExitConfig, "", "the state directory has no absolute path")
	}
	return dir, nil
}
