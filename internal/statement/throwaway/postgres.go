// Package throwaway starts databases that end with the test which asked for them. It is
// linked into nothing that people run.
package throwaway

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Postgres starts a PostgreSQL that nobody else uses, and returns the directory of its
// socket, where the user writ owns the database postgres without a password, and psql to
// that. Without one the test is skipped; make test installs it. Root runs it as somebody else, since PostgreSQL
// does not run as root.
func Postgres(t testing.TB) (socket string, psql *exec.Cmd) {
	t.Helper()
	bin := os.Getenv("WRIT_POSTGRES_BIN")
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin"); bin == "" && len(found) > 0 {
		bin = found[len(found)-1]
	}
	if _, err := os.Stat(filepath.Join(bin, "initdb")); bin == "" || err != nil {
		t.Skip("needs PostgreSQL: make peers, or WRIT_POSTGRES_BIN=DIR")
	}
	// Not t.TempDir: the directory of a socket is short, and somebody else has to reach it.
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	as := func(name string, args ...string) *exec.Cmd {
		if args = append([]string{filepath.Join(bin, name)}, args...); os.Getuid() == 0 {
			args = append([]string{"runuser", "-u", "postgres", "--"}, args...)
		}
		c := exec.Command(args[0], args[1:]...)
		c.Dir = dir
		return c
	}
	if os.Getuid() == 0 {
		if out, err := exec.Command("chown", "postgres", dir).CombinedOutput(); err != nil {
			t.Skipf("root has no user postgres to run PostgreSQL as: %s", out)
		}
	}
	data := filepath.Join(dir, "data")
	for _, c := range []*exec.Cmd{
		as("initdb", "-D", data, "-A", "trust", "-U", "writ", "-E", "UTF8", "--locale=C", "--no-sync"),
		as("pg_ctl", "-D", data, "-w", "-l", filepath.Join(dir, "log"), "-o", "-k "+dir+" -c listen_addresses='' -c fsync=off", "start"),
	} {
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", c.Args, err, out)
		}
	}
	t.Cleanup(func() { _ = as("pg_ctl", "-D", data, "-m", "immediate", "stop").Run() })
	return dir, as("psql", "-X", "-q", "-A", "-t", "-h", dir, "-U", "writ", "-d", "postgres")
}
