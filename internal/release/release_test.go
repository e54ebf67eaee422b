package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var at = time.Unix(1_800_000_000, 0).UTC()

func stub() *release {
	return &release{version: "v1.2.3", at: at, manual: []byte(".TH WRIT 1\n"),
		docs:   []file{{"README.md", 0o644, []byte("read\n")}, {"LICENSE", 0o644, []byte("licence\n")}},
		shells: map[string][]byte{"bash": []byte("b\n"), "zsh": []byte("z\n"), "fish": []byte("f\n"), "powershell": []byte("p\n")}}
}

// TestPacking: what is packed twice is the same to the byte, and Debian's own program
// reads the package.
func TestPacking(t *testing.T) {
	files := []file{{"w/a", 0o755, []byte("a")}, {"w/c/b", 0o644, bytes.Repeat([]byte("b"), 5000)}}
	r := stub()
	for name, pack := range map[string]func() ([]byte, error){
		"tar": func() ([]byte, error) { return tarred(files, at, "") },
		"zip": func() ([]byte, error) { return zipped(files, at) },
		"deb": func() ([]byte, error) { return r.debian("amd64", []byte("program\n")) },
	} {
		one, err := pack()
		if err != nil {
			t.Fatal(name, err)
		}
		for range 5 {
			if two, err := pack(); err != nil || !bytes.Equal(one, two) {
				t.Errorf("%s: two archives differ (%v)", name, err)
			}
		}
	}
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg-deb is not here: the package is not read")
	}
	deb, err := r.debian("amd64", []byte("program\n"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	pkg := filepath.Join(dir, "writ.deb")
	if err := os.WriteFile(pkg, deb, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := output(nil, "dpkg-deb", "--field", pkg, "Package", "Version", "Architecture")
	if err != nil || string(got) != "Package: writ\nVersion: 1.2.3\nArchitecture: amd64\n" {
		t.Errorf("%s %v", got, err)
	}
	if _, err := output(nil, "dpkg-deb", "--extract", pkg, filepath.Join(dir, "x")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"usr/bin/writ": "program\n", "usr/share/doc/writ/copyright": "licence\n", "usr/share/zsh/vendor-completions/_writ": "z\n"} {
		if b, err := os.ReadFile(filepath.Join(dir, "x", name)); err != nil || string(b) != want {
			t.Errorf("%s: %q %v", name, b, err)
		}
	}
}

// TestDebianVersion: the versions in the order Debian has to see them in.
func TestDebianVersion(t *testing.T) {
	order := []string{"0a1b2c3", "e65eac6", "v0.9.0-rc.1", "v0.9.0", "v0.9.0-2-gabc123", "v0.10.0-alpha", "v0.10.0", "v1.0.0+x"}
	for i, v := range order {
		if i == 0 {
			continue
		}
		a, b := debianVersion(order[i-1]), debianVersion(v)
		if _, err := exec.LookPath("dpkg"); err != nil {
			t.Skip("dpkg is not here: it is not asked which is newer")
		}
		if i > 1 && exec.Command("dpkg", "--compare-versions", a, "lt", b).Run() != nil {
			t.Errorf("%s is not before %s", a, b)
		}
		if exec.Command("dpkg", "--validate-version", b).Run() != nil {
			t.Errorf("%s is none", b)
		}
	}
}

func TestVersions(t *testing.T) {
	for _, v := range []string{"", "v1-dirty", "../x", "v1 2", "-x", "v1\n"} {
		if err := makeAll(v, at, t.TempDir(), nil, ""); err == nil {
			t.Errorf("%q is released", v)
		}
	}
}

// TestSameBytes: two releases for two systems are the same, each file is the one whose
// checksum stands there, and the signature is the key's.
func TestSameBytes(t *testing.T) {
	if os.Getenv("WRIT_LONG") == "" {
		t.Skip("it links the program six times: make test-long")
	}
	dir := t.TempDir()
	key := ""
	if _, err := exec.LookPath("ssh-keygen"); err == nil {
		key = filepath.Join(dir, "key")
		if _, err := output(nil, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key); err != nil {
			t.Fatal(err)
		}
	}
	of := []string{"linux/amd64", "windows/arm64"}
	outs := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	for _, out := range outs {
		if err := os.Mkdir(out, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := makeAll("v1.2.3", at, out, of, key); err != nil {
			t.Fatal(err)
		}
	}
	names, err := filepath.Glob(outs[0] + "/*")
	if err != nil || len(names) < 6 {
		t.Fatal(names, err)
	}
	sums, _ := os.ReadFile(filepath.Join(outs[0], "SHA256SUMS"))
	for _, path := range names {
		name := filepath.Base(path)
		one, _ := os.ReadFile(path)
		if two, _ := os.ReadFile(filepath.Join(outs[1], name)); !bytes.Equal(one, two) {
			t.Errorf("%s is not the same twice", name)
		}
		sum := sha256.Sum256(one)
		if line := hex.EncodeToString(sum[:]) + "  " + name + "\n"; !strings.HasPrefix(name, "SHA256SUMS") && !strings.Contains(string(sums), line) {
			t.Errorf("%s has no checksum", name)
		}
	}
	var bill struct{ Packages, Relationships []object }
	b, _ := os.ReadFile(filepath.Join(outs[0], "writ_1.2.3_linux_amd64.spdx.json"))
	if err := json.Unmarshal(b, &bill); err != nil || len(bill.Packages) < 10 || len(bill.Relationships) != len(bill.Packages) {
		t.Errorf("a bill of %d packages and %d relations: %v", len(bill.Packages), len(bill.Relationships), err)
	}
	if key == "" {
		t.Skip("ssh-keygen is not here: nothing is signed")
	}
	public, _ := os.ReadFile(key + ".pub")
	signers := filepath.Join(dir, "signers")
	if err := os.WriteFile(signers, append([]byte("operator "), public...), 0o600); err != nil {
		t.Fatal(err)
	}
	verify := func(b []byte) error {
		c := exec.Command("ssh-keygen", "-Y", "verify", "-f", signers, "-I", "operator", "-n", namespace, "-s", filepath.Join(outs[0], "SHA256SUMS.sig"))
		c.Stdin = bytes.NewReader(b)
		return c.Run()
	}
	if err := verify(sums); err != nil {
		t.Errorf("the signature does not hold: %v", err)
	}
	if verify(append(sums, ' ')) == nil {
		t.Error("it holds of other checksums")
	}
}
