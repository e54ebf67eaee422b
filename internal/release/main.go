// Command release makes what is shipped: for each system an archive with the program,
// its manual page and completions, for Linux a Debian package too, for each program a
// bill of materials (SPDX), and the checksums of all, signed where a key is given. The
// same commit and the same Go give the same bytes. It trusts the go command, git's time
// of the commit and, for the signature, ssh-keygen.
//
//	go run ./internal/release -version v1.2.3 -time 1800000000 -out dist/release [-key FILE]
//	go run ./internal/release -notices THIRD_PARTY_NOTICES [-check]
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// systems are those a release is made for.
var systems = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// program is what is shipped, by import path.
const program = "github.com/writ-project/writ/cmd/writ"

// namespace is under which an operator's key signs the checksums.
const namespace = "writ-release"

// file is one file of an archive or a package.
type file struct {
	name string // slashes, no beginning one
	mode int64
	body []byte
}

// release is what all archives of it have alike.
type release struct {
	version string
	at      time.Time // of every file in it
	docs    []file
	shells  map[string][]byte // completions
	manual  []byte
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run() error {
	version := flag.String("version", "", "what is released")
	at := flag.Int64("time", 0, "its time in seconds, of the commit")
	out := flag.String("out", "", "directory that is made, and must not be there")
	key := flag.String("key", "", "private key of the operator's, for ssh-keygen -Y sign")
	licences := flag.String("notices", "", "write the licences of all that is linked to `FILE`, and release nothing")
	check := flag.Bool("check", false, "look whether they stand there instead")
	flag.Parse()
	if *licences != "" {
		return noticed(*licences, *check)
	}
	if *out == "" || *at <= 0 || flag.NArg() > 0 {
		return errors.New("give -version, -time and -out")
	}
	if err := os.MkdirAll(filepath.Dir(*out), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(*out, 0o755); err != nil {
		return err
	}
	return makeAll(*version, time.Unix(*at, 0).UTC(), *out, systems, *key)
}

// released is how a version is written: it becomes a part of files' names.
var released = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+-]*$`)

// makeAll writes a release into a directory.
func makeAll(version string, at time.Time, out string, of []string, key string) error {
	if !released.MatchString(version) || strings.HasSuffix(version, "-dirty") {
		return errors.New("the version is that of a commit, with nothing changed beside it")
	}
	r := &release{version: version, at: at, shells: map[string][]byte{}}
	if err := r.describe(); err != nil {
		return err
	}
	var sums []string
	write := func(name string, b []byte) error {
		sum := sha256.Sum256(b)
		sums = append(sums, hex.EncodeToString(sum[:])+"  "+name+"\n")
		return os.WriteFile(filepath.Join(out, name), b, 0o644)
	}
	for _, system := range of {
		if err := r.make(system, write); err != nil {
			return fmt.Errorf("%s: %w", system, err)
		}
	}
	slices.SortFunc(sums, func(a, b string) int { return strings.Compare(a[sha256.Size*2:], b[sha256.Size*2:]) })
	list := filepath.Join(out, "SHA256SUMS")
	if err := os.WriteFile(list, []byte(strings.Join(sums, "")), 0o644); err != nil {
		return err
	}
	if key == "" {
		return nil
	}
	_, err := output(nil, "ssh-keygen", "-Y", "sign", "-q", "-f", key, "-n", namespace, list)
	return err
}

// describe reads what is beside the program in each archive, and has a program of this
// very source print its own manual page and completions.
func (r *release) describe() error {
	root, err := output(nil, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/writ-project/writ")
	if err != nil {
		return err
	}
	for _, name := range []string{"CHANGELOG.md", "LICENSE", "LIMITATIONS.md", "NOTICE", "README.md", "THIRD_PARTY_NOTICES"} {
		b, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), name))
		if err != nil {
			return err
		}
		r.docs = append(r.docs, file{name, 0o644, b})
	}
	dir, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	here := filepath.Join(dir, "writ")
	if err := r.build("", here); err != nil {
		return err
	}
	if r.manual, err = output(nil, here, "man"); err != nil {
		return err
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if r.shells[shell], err = output(nil, here, "completion", shell); err != nil {
			return err
		}
	}
	return nil
}

// build builds the program for a system, this one where it is "".
func (r *release) build(system, to string) error {
	env := []string{"CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOWORK=off"}
	if goos, goarch, ok := strings.Cut(system, "/"); ok {
		env = append(env, "GOOS="+goos, "GOARCH="+goarch)
	}
	_, err := output(env, "go", "build", "-trimpath", "-ldflags", "-s -w -X main.release="+r.version, "-o", to, program)
	return err
}

// make makes what is released for one system, and hands each file to write.
func (r *release) make(system string, write func(name string, b []byte) error) error {
	goos, goarch, _ := strings.Cut(system, "/")
	dir, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	built := filepath.Join(dir, "writ")
	if err := r.build(system, built); err != nil {
		return err
	}
	b, err := os.ReadFile(built)
	if err != nil {
		return err
	}
	name := "writ_" + strings.TrimPrefix(r.version, "v") + "_" + goos + "_" + goarch
	bill, err := r.bill(name, built, b)
	if err != nil {
		return err
	}
	if err := write(name+".spdx.json", bill); err != nil {
		return err
	}
	exe := file{name + "/writ", 0o755, b}
	if goos == "windows" {
		exe.name += ".exe"
	}
	files := []file{exe, {name + "/writ.1", 0o644, r.manual}}
	for _, d := range r.docs {
		files = append(files, file{name + "/" + d.name, d.mode, d.body})
	}
	for shell, b := range r.shells {
		files = append(files, file{name + "/completions/writ." + shell, 0o644, b})
	}
	sorted(files)
	switch goos {
	case "windows":
		if b, err = zipped(files, r.at); err == nil {
			err = write(name+".zip", b)
		}
		return err
	case "linux":
		deb, err := r.debian(goarch, b)
		if err == nil {
			err = write(name+".deb", deb)
		}
		if err != nil {
			return err
		}
	}
	if b, err = tarred(files, r.at, ""); err != nil {
		return err
	}
	return write(name+".tar.gz", b)
}

func sorted(files []file) {
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
}

// output runs a command and returns what it printed.
func output(env []string, name string, args ...string) ([]byte, error) {
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), env...)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, args[0], err, errs.Bytes())
	}
	return out, nil
}
