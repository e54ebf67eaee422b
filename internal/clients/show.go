package clients

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

var (
	credentialName = regexp.MustCompile(`(?i)token|secret|passw|pwd|api[-_]?key|access[-_]?key|private[-_]?key|auth|bearer|credential|cookie|session[-_]?id|_pat$|_key$|dsn|connection`)
	credentialText = regexp.MustCompile(`^(gh[a-z]_|github_pat_|glpat-|sk-|sk_|pk_|rk_|xox[a-z]-|AKIA|ASIA|ya29\.|eyJ|AIza|npm_|pypi-|hf_)|://[^/@\s]*:[^/@\s]*@|-----BEGIN`)
)

// Credentials names what of a server looks like one: the variables of its
// environment or its headers, and how many of its arguments.
func (s *Server) Credentials() (env []string, args int) {
	for name, value := range s.Env {
		if value != "" && (credentialName.MatchString(name) || credentialText.MatchString(value)) {
			env = append(env, name)
		}
	}
	slices.Sort(env)
	for _, h := range s.Headers {
		env = append(env, h.Name)
	}
	return env, len(secretArgs(s.Command))
}

// secretArgs are the arguments that look like a credential, or hold one.
func secretArgs(argv []string) (secret []string) {
	for i, a := range argv {
		name, value, has := strings.Cut(a, "=")
		if !has {
			name, value, has = strings.Cut(a, ":") // a header
		}
		switch {
		case credentialText.MatchString(a), has && value != "" && credentialName.MatchString(name) && !strings.ContainsAny(name, "/@"),
			has && credentialText.MatchString(value):
			secret = append(secret, a)
		case i > 0 && strings.HasPrefix(argv[i-1], "-") && !strings.Contains(argv[i-1], "=") && credentialName.MatchString(argv[i-1]) && !strings.HasPrefix(a, "-"):
			secret = append(secret, a)
		}
	}
	return secret
}

// hidden is a file as it may be shown: without values of environments and headers,
// and without arguments that look like credentials.
func (l Layout) hidden(b []byte) []byte {
	all, err := l.Read(b)
	if err != nil {
		return nil
	}
	var edits []edit
	for _, s := range all {
		for _, m := range s.masked {
			edits = append(edits, edit{m, []byte(`"…"`)})
		}
		where := s.args
		if l.Vector {
			where = s.command
		}
		args := slices.Clone(b[where.from:where.to])
		for _, a := range secretArgs(s.argv) {
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
	return apply(b, edits)
}

// Diff are the lines in which two files differ, "-" and "+" first, as they may be
// shown: a value that is a secret is not in them.
func (l Layout) Diff(before, after []byte) (lines []string) {
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
