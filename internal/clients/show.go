package clients

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/text"
)

var (
	credentialName = text.Pattern(`(?i)token|secret|passw|pwd|api[-_]?key|access[-_]?key|private[-_]?key|auth|bearer|credential|cookie|session[-_]?id|_pat$|_key$|dsn|connection`)
	credentialText = text.Pattern(`^(gh[a-z]_|github_pat_|glpat-|sk-|sk_|pk_|rk_|xox[a-z]-|AKIA|ASIA|ya29\.|eyJ|AIza|npm_|pypi-|hf_)|://[^/@\s]*:[^/@\s]*@|-----BEGIN`)
)

// Credentials names what of a server looks like one: the variables of its
// environment or its headers, and what its arguments give. It shows no value.
func (s *Server) Credentials() (env, args []string) {
	for name, value := range s.Env {
		if value != "" && (credentialName().MatchString(name) || credentialText().MatchString(value)) {
			env = append(env, name)
		}
	}
	slices.Sort(env)
	for _, h := range s.Headers {
		env = append(env, h.Name)
	}
	for i := range s.Command {
		if name, is := credentialAt(s.Command, i); is && !slices.Contains(args, name) {
			args = append(args, name)
		}
	}
	return env, args
}

// Shown is a command as it may be shown, without the arguments that look like a credential.
func Shown(argv []string) []string {
	out := slices.Clone(argv)
	for i := range argv {
		if _, is := credentialAt(argv, i); is {
			out[i] = "…"
		}
	}
	return out
}

// ShownEnv is an environment as it may be shown, without the values that look like a
// credential.
func ShownEnv(env map[string]string) (shown map[string]string) {
	shown = map[string]string{}
	for name, value := range env {
		if shown[name] = value; value != "" && (credentialName().MatchString(name) || credentialText().MatchString(value)) {
			shown[name] = "…"
		}
	}
	return shown
}

// credentialWord is one in what a program writes: by its form, within an address, or behind
// a word that says what it is.
var credentialWord = text.Pattern(`(\b)(?:(?:gh[a-z]_|github_pat_|glpat-|sk-|sk_|pk_|rk_|xox[a-z]-|AKIA|ASIA|ya29\.|eyJ|AIza|pypi-)[A-Za-z0-9_.+/=-]{12,}|(?:npm_|hf_)[A-Za-z0-9]{20,})` +
	`|(://[^/@\s:]*:)[^/@\s]+(@)` +
	`|((?i:\bbearer|\bbasic)\s+)[A-Za-z0-9_.~+/=-]{12,}` +
	`|((?i:token|secret|passw[a-z]*|pwd|api[-_]?key|access[-_]?key|private[-_]?key)["']?\s*[=:]\s*["']?)[^\s"',;}]*[0-9][^\s"',;}]*`)

const withoutWord = "$1$2$4$5…$3" // of credentialWord

// Without is what a server of that environment and command wrote, without the values that
// either gives it as a credential, and without what looks like one. Those of less than
// four characters stay.
func Without(env map[string]string, argv []string, said string) string {
	var values []string
	add := func(v string) {
		if len(v) >= 4 {
			values = append(values, v)
		}
	}
	for name, value := range env {
		if credentialName().MatchString(name) || credentialText().MatchString(value) {
			add(value)
		}
	}
	for i, a := range argv {
		if _, is := credentialAt(argv, i); !is {
			continue
		}
		add(a)
		for m := given().FindStringSubmatch(a); m != nil; m = given().FindStringSubmatch(m[2]) {
			add(m[2])
		}
	}
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) }) // one may hold another
	for _, v := range values {
		said = strings.ReplaceAll(said, v, "…")
	}
	return credentialWord().ReplaceAllString(said, withoutWord)
}

var (
	// given is NAME=VALUE, --name=VALUE, or a header; -e KEY=… and -HName:… hold one.
	given = text.Pattern(`^(-{0,2}[A-Za-z][A-Za-z0-9_.-]*)[ \t]*[=:][ \t]*(.+)$`)
	// inQuery is what a link gives behind its ? or #.
	inQuery = text.Pattern(`[?&#]([A-Za-z0-9_.~-]+)=[^&#\s]`)
	// noCredential are names of files that hold one, and noSecret values that are none.
	noCredential = text.Pattern(`(?i)[-_]?(file|path|dir|url|type|mode)$`)
	noSecret     = text.Pattern(`(?i)^(true|false|yes|no|on|off|none|[0-9]{1,4})$`)
)

// credentialAt reports whether an argument looks like a credential, or holds one, and what
// it is called there: the option before it, the name within it, or its number.
func credentialAt(argv []string, i int) (name string, is bool) {
	a := argv[i]
	secret := func(name, value string) bool {
		return credentialName().MatchString(name) && !noCredential().MatchString(name) && !noSecret().MatchString(value)
	}
	if i > 1 { // the first is the program
		if option := argv[i-1]; strings.HasPrefix(option, "-") && !strings.ContainsAny(option, "=:") && !strings.HasPrefix(a, "-") && a != "" && secret(option, a) {
			return option, true
		}
	}
	for rest := a; ; {
		m := given().FindStringSubmatch(rest)
		if m == nil {
			break
		}
		if secret(m[1], m[2]) {
			return m[1], true
		}
		if rest = m[2]; credentialText().MatchString(rest) {
			return m[1], true
		}
	}
	for _, m := range inQuery().FindAllStringSubmatch(a, -1) {
		if credentialName().MatchString(m[1]) {
			return m[1], true
		}
	}
	return fmt.Sprintf("argument %d", i), credentialText().MatchString(a)
}

// hidden is a file as it may be shown: without values of environments and headers, without
// arguments that look like credentials, and without what is of no server, which a file in one
// line has beside them.
func (l Layout) hidden(b []byte) []byte {
	all, err := l.Read(b)
	if err != nil {
		return nil
	}
	var masked []span
	if !l.TOML {
		masked = l.beside(b)
	}
	var edits []edit
	for _, s := range all {
		if masked = append(masked, s.masked...); s.argv == nil {
			masked = append(masked, s.words...)
			continue
		}
		where := s.args
		if l.Vector {
			where = s.command
		}
		args := slices.Clone(b[where.from:where.to])
		for i, a := range s.argv {
			if _, is := credentialAt(s.argv, i); !is {
				continue
			}
			if q := quoted(a); bytes.Contains(args, q) {
				args = bytes.ReplaceAll(args, q, []byte(`"…"`))
			} else {
				args = []byte("[…]") // written some other way
			}
		}
		if !where.empty() {
			edits = append(edits, edit{where, args})
		}
	}
	for _, m := range masked {
		edits = append(edits, edit{m, []byte(`"…"`)})
	}
	return apply(b, edits)
}

// Diff are the lines in which two files differ, "-" and "+" first, as they may be
// shown: a value that is a secret is not in them, nor one in a comment that looks like it.
func (l Layout) Diff(before, after []byte) (lines []string) {
	for _, line := range l.diff(before, after) {
		lines = append(lines, credentialWord().ReplaceAllString(line, withoutWord))
	}
	return lines
}

func (l Layout) diff(before, after []byte) (lines []string) {
	a, b := linesOf(l.hidden(before)), linesOf(l.hidden(after))
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a)*len(b) > 1<<22 { // too much for a table: as one change
		return append(marked("-", a), marked("+", b)...)
	}
	same := make([][]int, len(a)+1) // how many lines a[i:] and b[j:] share
	for i := range same {
		same[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if same[i][j] = max(same[i+1][j], same[i][j+1]); a[i] == b[j] {
				same[i][j] = same[i+1][j+1] + 1
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || same[i+1][j] >= same[i][j+1]):
			lines = append(lines, "-"+a[i])
			i++
		default:
			lines = append(lines, "+"+b[j])
			j++
		}
	}
	return lines
}

func linesOf(b []byte) []string {
	return strings.Split(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n")
}

func marked(mark string, lines []string) (out []string) {
	for _, l := range lines {
		out = append(out, mark+l)
	}
	return out
}
