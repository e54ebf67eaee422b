package shell

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// shells are those that a client may start, as it may have set them.
var shells = [][]string{{"bash", "--norc", "--noprofile"}, {"dash"}, {"zsh", "-f"}, {"zsh", "-f", "-o", "extendedglob", "-o", "nonomatch", "-o", "rcquotes"}}

// pieces are what a command is changed by: what one shell or another takes for more than
// a text.
var pieces = []string{`\`, "\n", "\\\n", "#", " # ", "'", `"`, "$", "$HOME", "${HOME}", "$PWD", "[", "]", "[x=5]", "{", "}", " { ", " } ", "(", ")", ";", "&", "|", "&&", "||", "!",
	" ! ", "<<EOF\n", "<<'EOF'\n", "<<\"EOF\"\n", "\nEOF\n", "\nE\\\nOF\n", "EOF", "<<<", "<", ">", " touch PWN ", "\ntouch PWN\n", "$(touch PWN)", "`touch PWN`", "$((PWN=1))", ">PWN", " > PWN ",
	"</dev/null", "2>&1", "=", "~", "^", "%", "%n PATH", "%d", "*", "?", ":", ":h", "@", "+", ",", "..", "-", "--", "-o PWN", "--output=PWN", "always", "PATH=3", "1", " ", "\t", "''", `""`,
	"$'", `$"`, "a", "|&", "&>", ">&", "((", "))", "é", "à", "ls", "\ncat <<A\n", "\nA\n", "$~HOME", "$=HOME", "then", "do", "esac", "\r", "\v", "${HOME:-a}"}

// changed is a case of the table with some pieces more or less in it.
func changed(r *rand.Rand, from []string) string {
	c := from[r.IntN(len(from))]
	for range 1 + r.IntN(4) {
		at := r.IntN(len(c) + 1)
		switch r.IntN(8) {
		case 0: // less
			c = c[:at] + c[min(len(c), at+1+r.IntN(3)):]
		case 1: // twice
			end := min(len(c), at+r.IntN(12))
			c = c[:end] + c[at:]
		case 2: // another behind it
			c += []string{"; ", "\n", " | ", " && "}[r.IntN(4)] + from[r.IntN(len(from))]
		default:
			c = c[:at] + pieces[r.IntN(len(pieces))] + c[at:]
		}
	}
	return c
}

// TestShells: what only reads, by whichever shell, starts the programs that were read
// with the words that were read, and makes and sets nothing.
func TestShells(t *testing.T) {
	var from []string
	for _, c := range cases(t) {
		if c[0] != "asks" {
			from = append(from, c[1])
		}
	}
	all := slices.Clone(from)
	seed, most := uint64(1), 250
	if n, err := strconv.Atoi(os.Getenv("WRIT_SHELL_COMMANDS")); err == nil { // for a longer look
		seed, most = uint64(time.Now().UnixNano()), n
	}
	t.Logf("seed %d", seed)
	for r := rand.New(rand.NewPCG(seed, 2)); len(all) < most; {
		if c := changed(r, from); Read(c).Reads && !slices.Contains(from, c) {
			all = append(all, c)
		}
	}
	for _, shell := range shells {
		t.Run(strings.Join(shell, " "), func(t *testing.T) {
			path, err := exec.LookPath(shell[0])
			if err != nil {
				t.Skipf("there is no %s", shell[0])
			}
			box := newBox(t, append([]string{path}, shell[1:]...))
			for some := range slices.Chunk(all, 100) {
				if box.run(t, some) {
					continue
				}
				for _, c := range some {
					box.says(t, c)
				}
			}
		})
	}
}

// box is an empty directory, in which a shell finds programs that write down how they
// are called, and no others.
type box struct {
	shell              []string
	dir, home, bin, at string // at is what they write to
}

func newBox(t *testing.T, shell []string) *box {
	top := t.TempDir()
	b := &box{shell, filepath.Join(top, "dir"), filepath.Join(top, "home"), filepath.Join(top, "bin"), filepath.Join(top, "log")}
	for _, d := range []string{b.dir, b.home, b.bin} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	stub := "#!/bin/sh\nl=\"ran\x1f${0##*/}\"\nfor a; do l=\"$l\x1f$a\"; done\nprintf '%s\\036' \"$l\" >>\"$WRIT_LOG\"\n"
	names := []string{"touch", "rm", "sh", "a", "b", "x", "id", "make"}
	for _, p := range programs() {
		names = append(names, p.name[0])
	}
	for _, n := range names {
		if err := os.WriteFile(filepath.Join(b.bin, n), []byte(stub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// each runs commands, each in a shell of its own, below one that says where it is.
const each = `for c in "$@"; do
	printf 'at\036' >>"$WRIT_LOG"
	(eval "$c"; printf 'end\037%s\037%s\037%s\036' "$PATH" "$HOME" "$PWD" >>"$WRIT_LOG") </dev/null >/dev/null
done`

var notFound = regexp.MustCompile(`(?m)not found(: \S+)?$`)

// run reports whether some commands do nothing but what was read. It says what is wrong
// where there is one of them.
func (b *box) run(t *testing.T, commands []string) (well bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	os.Remove(b.at)
	c := exec.CommandContext(ctx, b.shell[0], append(b.shell[1:len(b.shell):len(b.shell)], append([]string{"-c", each, "each"}, commands...)...)...)
	c.Dir, c.Env = b.dir, []string{"PATH=" + b.bin, "HOME=" + b.home, "WRIT_LOG=" + b.at, "LC_ALL=C.UTF-8"}
	var stderr bytes.Buffer
	c.Stderr = &stderr
	err := c.Run()
	wrong := func(format string, args ...any) bool {
		if len(commands) == 1 {
			t.Errorf("%q: "+format, append([]any{commands[0]}, args...)...)
		}
		return false
	}
	if ctx.Err() != nil {
		return wrong("does not end: %v", err)
	}
	for _, d := range []string{b.dir, b.home} {
		if made, err := os.ReadDir(d); err != nil || len(made) > 0 {
			for _, m := range made {
				os.RemoveAll(filepath.Join(d, m.Name()))
			}
			return wrong("makes %v %v", made, err)
		}
	}
	log, err := os.ReadFile(b.at)
	if err != nil {
		t.Fatal(err)
	}
	at := -1
	for line := range strings.SplitSeq(strings.TrimSuffix(string(log), "\x1e"), "\x1e") {
		words := strings.Split(line, "\x1f")
		switch words[0] {
		case "at":
			at++
		case "end":
			if !slices.Equal(words[1:], []string{b.bin, b.home, b.dir}) {
				return wrong("sets %q", words)
			}
		case "ran":
			if !slices.ContainsFunc(programs(), func(p *program) bool { return p.name[0] == words[1] }) {
				return wrong("runs %q", words[1:])
			}
			if at < len(commands) && !b.read(commands[at], words[1:]) {
				return wrong("runs %q, which was not read", words[1:])
			}
		default:
			t.Fatalf("%q", line)
		}
	}
	if at+1 != len(commands) {
		return wrong("ended the shell: %s", stderr.String())
	}
	looks := slices.ContainsFunc(commands, func(c string) bool { return strings.Contains(c, "type") || strings.Contains(c, "which") })
	if notFound.Match(stderr.Bytes()) && !(looks && len(commands) == 1) {
		return wrong("looks for a program: %s", stderr.String())
	}
	return true
}

// says fails the test where a command does more than was read.
func (b *box) says(t *testing.T, command string) { b.run(t, []string{command}) }

// read reports whether all words that a program was started with were read. What a
// pattern stands for is not known.
func (b *box) read(command string, words []string) bool {
	known := map[string]bool{"": true, ".": true, "..": true}
	for _, w := range Read(command).Words {
		if strings.Contains(w, "{") || strings.Contains(command, `\$`) {
			return true
		}
		known[w] = true
		if rest, ok := strings.CutPrefix(w, "~"); ok {
			known[b.home+rest] = true
		}
		known[strings.NewReplacer("$HOME", b.home, "$PWD", b.dir).Replace(w)] = true
	}
	return !slices.ContainsFunc(words, func(w string) bool {
		return !known[w] && !(strings.ContainsAny(command, "*?[") && strings.HasPrefix(w, "/"))
	})
}
