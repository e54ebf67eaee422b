package gate

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/text"
)

const (
	// maxSpellings bounds the readings of one text: an ordinary path has one to
	// three.
	maxSpellings = 48
	// maxSpelled bounds them together, beyond the first few: no path is as long.
	maxSpelled = 256 << 10
	quotation  = " \t\r\n\v\f\"'`<>\u00a0\ufeff"
)

var (
	scheme = text.Pattern(`^[A-Za-z][A-Za-z0-9+.-]+:`)
	// address begins a URL of another machine, which is no file's unless ".." takes
	// the host and the scheme off: with both slashes and a host.
	address    = text.Pattern(`^(?i:https?|wss?):[/\\]{2}[^/\\?#]`)
	device     = text.Pattern(`^//[?.]/((?i)unc/)?`)
	share      = text.Pattern(`^//[^/]+/([A-Za-z])\$(?:/|$)`) // //host/c$/x
	driveRoot  = text.Pattern(`^/([A-Za-z])[:|]?(?:/|$)`)     // /C:/x, /c|/x and /c/x
	driveWhere = text.Pattern(`^[A-Za-z]:[^/]`)               // C:x
	variable   = text.Pattern(`^(?:\$\{([A-Za-z_]\w*)\}|\$(?:(?i)env:)?([A-Za-z_]\w*)|%([A-Za-z_]\w*)%)(?:/|$)`)
	homeDrive  = text.Pattern(`(?i)^%homedrive%/?%homepath%`)
	homes      = []string{"HOME", "USERPROFILE", "HOMEPATH"}
)

// Paths returns what a text may mean to a server as the path of a file, each
// with slashes and with its "." and ".." still in it: as it stands, and with
// white space and quotes around it, escapes, backslashes, a scheme, a host and
// the prefixes of Windows taken off, in any combination. "~/x" and "~kim/x"
// begin in a home directory, "$NAME/x" in what that variable holds, "/x" and
// "C:/x" at a root; any other path is relative. To a server that knows nothing
// of homes, variables and drives these are relative too, which stands beside it
// as "./~/x". Of a text that may mean too much these are not all.
func Paths(text string) (out []string, all bool) {
	todo, size, all := []string{text}, 0, true
	add := func(s string) {
		switch {
		case slices.Contains(todo, s):
		case len(todo) == maxSpellings || size >= 4*len(text)+maxSpelled:
			all = false
		default:
			todo, size = append(todo, s), size+len(s)
		}
	}
	for i := 0; i < len(todo); i++ {
		s := todo[i]
		if at := strings.IndexByte(s, 0); at >= 0 { // where a C string ends
			add(s[:at])
		}
		add(strings.Trim(s, quotation))
		if s != "" {
			out = append(out, s)
		}
		if elsewhere(s) {
			out = append(out, "./"+s)
		}
		if !strings.ContainsAny(s, `\/:%$ `) {
			continue
		}
		if c := path.Clean(s); elsewhere(c) { // to a server that cleans first
			add(c)
		}
		add(percentDecode(s))
		add(strings.ReplaceAll(s, `\`, "/"))
		if strings.Contains(s, " /") {
			names := strings.Split(s, "/")
			for i, name := range names {
				names[i] = strings.TrimRight(name, " ")
			}
			add(strings.Join(names, "/"))
		}
		if !ofURL(s, add) {
			ofWindows(s, add)
			ofVariable(s, add)
		}
	}
	return out, all
}

// ofURL takes a scheme and a host off, and reports whether it is an address of another machine.
func ofURL(s string, add func(string)) (web bool) {
	m := scheme().FindString(s)
	if m == "" {
		return false
	}
	rest := strings.ReplaceAll(s[len(m):], `\`, "/")
	if at := strings.IndexAny(rest, "?#"); at >= 0 {
		add(m + rest[:at])
	}
	if address().MatchString(s) {
		return true
	}
	if host, ok := strings.CutPrefix(rest, "//"); ok {
		rest = host[strings.IndexByte(host+"/", '/'):]
		add(host) // where no host is read
	}
	add(rest)
	return false
}

// ofWindows takes off what paths begin with there, and writes a drive as "C:/".
func ofWindows(s string, add func(string)) {
	if m := device().FindStringSubmatch(s); m != nil {
		if rest := s[len(m[0]):]; m[1] != "" {
			add("//" + rest)
		} else {
			add(rest)
		}
	} else if rest, ok := strings.CutPrefix(s, "//"); ok {
		add("/" + strings.TrimLeft(rest, "/"))
		for range 2 { // a host, and a share
			if _, rest, ok = strings.Cut(rest, "/"); ok {
				add("/" + rest)
			}
		}
	}
	for _, drive := range []func() *regexp.Regexp{share, driveRoot} { // several slashes are one by now
		if m := drive().FindStringSubmatch(s); m != nil {
			add(m[1] + ":/" + s[len(m[0]):])
		}
	}
	if driveWhere().MatchString(s) {
		add(s[2:])
	}
}

// ofVariable writes a variable as "$NAME/", and one that holds a home directory as "~/".
func ofVariable(s string, add func(string)) {
	if at := homeDrive().FindStringIndex(s); at != nil {
		add("~" + s[at[1]:])
	}
	m := variableIn(s)
	if m == nil {
		return
	}
	name := m[1] + m[2] + m[3]
	if slices.Contains(homes, strings.ToUpper(name)) {
		add("~/" + s[len(m[0]):])
	} else {
		add("$" + name + "/" + s[len(m[0]):])
	}
}

// elsewhere reports whether a path begins in a home, a variable or a drive.
func elsewhere(s string) bool {
	return s != "" && (s[0] == '~' || s[0] == '$') || drive(s) || variableIn(s) != nil
}

// variableIn returns what of a path that begins with a variable is its name, nil of any
// other.
func variableIn(s string) []string {
	if s == "" || s[0] != '$' && s[0] != '%' {
		return nil
	}
	return variable().FindStringSubmatch(s)
}

func drive(s string) bool {
	return len(s) > 1 && s[1] == ':' && 'a' <= s[0]|0x20 && s[0]|0x20 <= 'z'
}

// A spelled path is one reading of a text, cleaned and taken apart as the most
// lenient file system compares it.
type spelled struct {
	parts   []string // folded; a drive is the first of them, "c:"
	abs     bool
	up      bool   // leads above where it begins
	home    bool   // begins in the home directory of user, "" for whose it is
	away    bool   // begins, or goes on, where a variable says
	user    string // folded
	foreign bool   // see Foreign
}

// spell reads one result of Paths. /proc/…/root and /proc/…/cwd are read as
// what the kernel makes of them.
func spell(s string) spelled {
	var p spelled
	rest := s
	switch {
	case strings.HasPrefix(s, "/"):
		p.abs = true
	case strings.HasPrefix(s, "~"):
		user, after, _ := strings.Cut(s[1:], "/")
		if user == "+" || user == "-" { // a shell's working directories
			user, p.away = "", true
		}
		p.home, p.user, rest = !p.away, foldName(user), after
	case variableIn(s) != nil:
		_, rest, _ = strings.Cut(s, "/")
		p.away = true
	case drive(s):
		p.abs, p.parts, rest = true, []string{strings.ToLower(s[:2])}, s[2:]
	}
	if rest != "" {
		p.parts = slices.Grow(p.parts, strings.Count(rest, "/")+1)
	}
	root, first := len(p.parts), ""
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			if len(p.parts) > root {
				p.parts = p.parts[:len(p.parts)-1]
			} else {
				p.up = true
			}
			continue
		}
		if len(p.parts) == 0 {
			first = name
		}
		p.away = p.away || strings.Contains(name, "$") || strings.Count(name, "%") > 1
		p.parts = append(p.parts, foldName(name))
		if n := len(p.parts); p.abs && (n == 3 || n == 5 && p.parts[2] == "task") && p.parts[0] == "proc" {
			switch p.parts[n-1] {
			case "cwd":
				p.abs, p.parts = false, nil
			case "root":
				p.parts = nil
			}
		}
	}
	p.foreign = !p.abs && strings.HasSuffix(first, ":") && (address().MatchString(s) || len(first) == 2)
	return p
}

// Foreign reports whether a result of Paths leads into a directory that has the
// name of a drive or, in a web URL, of its scheme. No server is at home in one.
func Foreign(path string) bool { return spell(path).foreign }

// foldName is a name as the most careless file system compares it: without
// regard to case, composition, invisible characters, a stream of NTFS, and dots
// and spaces at its end.
func foldName(s string) string {
	s = strings.Map(func(r rune) rune {
		if text.Hidden(r, text.Ignorable) {
			return -1
		}
		return r
	}, text.Fold(s, text.Canonical))
	if at := strings.IndexByte(s, ':'); at > 0 {
		s = s[:at]
	}
	if t := strings.TrimRight(s, ". "); t != "" {
		return t
	}
	return s
}
