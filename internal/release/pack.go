package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/md5" // of Debian's md5sums; SHA256SUMS is what counts
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"time"
)

// tarred is files as a compressed archive: of nobody's, all of one time, each directory
// before what is in it. Names begin with prefix.
func tarred(files []file, at time.Time, prefix string) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	made := map[string]bool{".": true}
	var dir func(name string) error
	dir = func(name string) error {
		if made[name] {
			return nil
		}
		made[name] = true
		if err := dir(path.Dir(name)); err != nil {
			return err
		}
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: prefix + name + "/", Mode: 0o755, ModTime: at, Format: tar.FormatUSTAR})
	}
	for _, f := range files {
		if err := dir(path.Dir(f.name)); err != nil {
			return nil, err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: prefix + f.name, Mode: f.mode, Size: int64(len(f.body)), ModTime: at, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.body); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return compressed(b.Bytes())
}

// zipped is files as the archive that Windows opens.
func zipped(files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		to, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(f.body); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// compressed is one file as gzip has it, of no name and no time.
func compressed(body []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(body); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}

// debian is the program as a package of Debian's: deb(5).
func (r *release) debian(arch string, exe []byte) ([]byte, error) {
	manual, err := compressed(r.manual)
	if err != nil {
		return nil, err
	}
	files := []file{
		{"usr/bin/writ", 0o755, exe},
		{"usr/share/man/man1/writ.1.gz", 0o644, manual},
		{"usr/share/bash-completion/completions/writ", 0o644, r.shells["bash"]},
		{"usr/share/zsh/vendor-completions/_writ", 0o644, r.shells["zsh"]},
		{"usr/share/fish/vendor_completions.d/writ.fish", 0o644, r.shells["fish"]},
	}
	for _, d := range r.docs {
		name := d.name
		if name == "LICENSE" {
			name = "copyright"
		}
		files = append(files, file{"usr/share/doc/writ/" + name, d.mode, d.body})
	}
	sorted(files)
	size, sums := 0, ""
	for _, f := range files {
		size += (len(f.body) + 1023) / 1024
		sum := md5.Sum(f.body)
		sums += hex.EncodeToString(sum[:]) + "  " + f.name + "\n"
	}
	control := fmt.Sprintf("Package: writ\nVersion: %s\nArchitecture: %s\nMaintainer: The Writ Authors\nInstalled-Size: %d\nSection: utils\nPriority: optional\n"+
		"Description: gate between an AI agent and its tools\n A tool call with a side effect runs only if every argument traces to something\n that was seen in the same session.\n", debianVersion(r.version), arch, size)
	data, err := tarred(files, r.at, "./")
	if err != nil {
		return nil, err
	}
	about, err := tarred([]file{{"control", 0o644, []byte(control)}, {"md5sums", 0o644, []byte(sums)}}, r.at, "./")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, m := range []file{{"debian-binary", 0o644, []byte("2.0\n")}, {"control.tar.gz", 0o644, about}, {"data.tar.gz", 0o644, data}} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", m.name, r.at.Unix(), 0, 0, 0o100000|m.mode, len(m.body))
		b.Write(m.body)
		if len(m.body)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes(), nil
}

// debianVersion is a version as Debian sorts it: it begins with a digit, and what comes
// before a release sorts before it.
func debianVersion(v string) string {
	v = strings.TrimPrefix(v, "v")
	if v[0] < '0' || v[0] > '9' || !strings.Contains(v, ".") { // a commit of no tag
		return "0~" + strings.ReplaceAll(v, "-", "+")
	}
	base, rest, more := strings.Cut(v, "-")
	switch {
	case !more:
		return base
	case rest[0] >= '0' && rest[0] <= '9': // commits after a tag: 1.2.3-4-gabc
		return base + "+" + strings.ReplaceAll(rest, "-", "+")
	}
	return base + "~" + strings.ReplaceAll(rest, "-", "+")
}
