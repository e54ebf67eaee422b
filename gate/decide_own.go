package gate

import (
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// A place is one path of Writ's own, taken apart, and where a relative path of
// this call would have to begin to reach it.
type place struct {
	parts   []string
	file    bool   // by its name: it has an extension
	program bool   // may be read, and may have any name
	starts  []bool // by length: a relative path may begin in parts[:i]
	climb   int    // the longest parts[:climb] above which ".." may lead
}

// begin notes that a relative path may begin in dir, and reports whether that
// is news.
func (o *place) begin(dir []string) bool {
	n := 0
	for n < len(dir) && n < len(o.parts) && dir[n] == o.parts[n] {
		n++
	}
	o.climb = max(o.climb, n)
	if n < len(dir) && n < len(o.parts) || o.starts[n] {
		return false
	}
	o.starts[n] = true
	return true
}

// A named path is one that a leaf of the call may mean.
type named struct {
	spelled
	leaf *leaf
	bare bool // a single word, which need not be a path at all
}

// own refuses what names Writ's own files: its state, its configuration and, in
// an act that writes, the programs it starts (R34). Every argument is judged but
// content, which is text and goes where another argument says; of a query a
// single word is a word to look for. A relative path is judged from each
// directory it may begin in: the server's, and those that other arguments of
// the call name. Where no directory of the server is known, the tail of a path
// must do.
func (j *judge) own() {
	all := j.in.Own
	if !all.of(j.in) {
		all = OwnPlacesOf(j.in.OwnPaths, j.in.Programs, j.in.Bases)
	}
	hits := map[*leaf]bool{}
	if paths := j.meant(all, hits); len(paths) > 0 {
		j.touch(paths, all.forCall(), hits)
	}
	for _, l := range j.leaves {
		if hits[l] {
			j.direct = append(j.direct, writ.Failure{Pointer: l.pointer, Reason: writ.DirectOwnState,
				Need: "`" + shown(l.pointer) + "` " + needs[writ.DirectOwnState]})
		}
	}
	for _, at := range j.in.Unresolved {
		j.unresolved(at)
	}
}

// meant returns the paths that the call may mean, of those that have a name of Writ's own
// in them, and notes which arguments are an address of its own.
func (j *judge) meant(all *OwnPlaces, hits map[*leaf]bool) (paths []named) {
	work := 0
	for _, l := range j.leaves {
		if !l.maybePath() && len(j.in.Resolved[l.pointer]) == 0 {
			continue
		}
		if strings.Contains(l.text, ":") && all.endpoints[endpoint(strings.ToLower(l.text))] {
			hits[l] = true
		}
		if len(all.places) == 0 {
			continue
		}
		readings, whole := Paths(l.text)
		if work += len(readings); !whole || work > maxReadings {
			j.unresolved(l.pointer)
			break
		}
		bare := !strings.ContainsAny(l.text, `/\~$%.`)
		for i, s := range append(readings, j.in.Resolved[l.pointer]...) {
			p := named{spell(s), l, bare && i < len(readings)}
			if all.within || len(p.parts) == 0 || slices.ContainsFunc(p.parts, func(name string) bool { return all.names[name] }) {
				paths = append(paths, p)
			}
		}
	}
	return paths
}

// touch notes which arguments reach one of the places.
func (j *judge) touch(paths []named, places []place, hits map[*leaf]bool) {
	// What a call names may be joined by the server: {"dir": …, "name": …}.
	for more, round := true, 0; more && round < maxJoins; round++ {
		more = false
		for _, p := range paths {
			for i := range places {
				more = places[i].join(p.spelled) || more
			}
		}
	}
	written := j.d.Effect&(policy.Write|policy.Delete) != 0
	for _, p := range paths {
		// A declared target that is written to is a place, not what is taken away.
		above := j.d.Effect&(policy.Delete|policy.Send|policy.Egress|policy.Transfer) != 0 || j.d.Effect&policy.Write != 0 && (p.leaf.rule == nil || p.leaf.role == policy.Selector)
		hits[p.leaf] = hits[p.leaf] || slices.ContainsFunc(places, func(o place) bool {
			return (written || !o.program) && o.touched(p, above, j.in.Bases == nil || j.in.Elsewhere)
		})
	}
}

// maxReadings bounds what the texts of one call may mean together. One that
// means more is refused.
const maxReadings = 200_000

// unresolved refuses an argument that was not looked at to its end.
func (j *judge) unresolved(pointer string) {
	j.direct = append(j.direct, writ.Failure{Pointer: pointer, Reason: writ.DirectUnresolved,
		Need: "`" + shown(pointer) + "` " + needs[writ.DirectUnresolved]})
}

// maybePath reports whether a leaf is judged as a path.
func (l *leaf) maybePath() bool {
	return l.isText && l.role != policy.Content && !l.enum && (l.role != policy.Query || strings.ContainsAny(l.text, `/\`))
}

// Text is one text of a call that may be the path of a file.
type Text struct{ Pointer, Text string }

// Texts returns what of a call the door must look up before Decide can judge it
// by what the file system knows (Input.Resolved): none of a call that is refused
// whatever is found. writes says that it is an act that writes, and read spares
// Decide to read the call again (Input.Reading).
func Texts(in Input) (texts []Text, writes bool, read *Reading) {
	read = &Reading{of: begin(&in)}
	var ok bool
	if read.named, read.invalid, ok = read.of.open(); !ok {
		return nil, false, nil
	}
	j := &read.of
	for _, l := range j.leaves {
		if l.maybePath() {
			texts = append(texts, Text{l.pointer, l.text})
		}
	}
	if j.d.Effect.Gated() && !j.governed() {
		own := begin(&in) // what forms finds is for Decide to find again
		j = &own
		j.again(read)
		j.forms()
	}
	if len(read.named)+len(read.invalid)+len(j.schema) > 0 && !in.Shadow { // shadow mode lets them pass
		return nil, false, read
	}
	return texts, j.d.Effect&policy.Write != 0, read
}

// maxJoins is of how many arguments a server may make one path.
const maxJoins = 12

// OwnPlaces are Writ's own paths taken apart, and held against where a server's relative
// paths may begin: what Decide would else do with each call. They never change.
type OwnPlaces struct {
	own, programs, bases []string // as they were given
	places               []place
	names                map[string]bool // of the parts of all of them
	endpoints            map[string]bool
	within               bool // one of them is where a relative path may begin
}

// OwnPlacesOf makes what Input.Own may be of a call with these OwnPaths, Programs and
// Bases. Nobody changes them from then on.
func OwnPlacesOf(own, programs, bases []string) *OwnPlaces {
	all := &OwnPlaces{own: own, programs: programs, bases: bases, places: make([]place, 0, len(own)+len(programs))}
	begins := make([][]string, len(bases))
	for i, b := range bases {
		begins[i] = spell(strings.ReplaceAll(b, `\`, "/")).parts
	}
	for _, p := range own {
		if at := endpoint(strings.ToLower(p)); at != "" {
			if all.endpoints == nil {
				all.endpoints = map[string]bool{}
			}
			all.endpoints[at] = true
		}
		all.add(p, false, begins)
	}
	for _, p := range programs {
		all.add(p, true, begins)
	}
	all.names = make(map[string]bool, 4*len(all.places))
	for i := range all.places {
		o := &all.places[i]
		all.within = all.within || o.starts[len(o.parts)]
		for _, name := range o.parts {
			all.names[name] = true
		}
	}
	return all
}

func (all *OwnPlaces) add(path string, program bool, begins [][]string) {
	if strings.Contains(path, "://") {
		return
	}
	parts := spell(strings.ReplaceAll(path, `\`, "/")).parts
	if len(parts) == 0 {
		return
	}
	last := parts[len(parts)-1]
	o := place{parts: parts, program: program, file: strings.LastIndexByte(last, '.') > 0, starts: make([]bool, len(parts)+1)}
	for _, b := range begins {
		o.begin(b)
	}
	all.places = append(all.places, o)
}

// of reports whether they are those of a call.
func (all *OwnPlaces) of(in *Input) bool {
	return all != nil && slices.Equal(all.own, in.OwnPaths) && slices.Equal(all.programs, in.Programs) && slices.Equal(all.bases, in.Bases)
}

// forCall returns places that a call may add to where its relative paths begin.
func (all *OwnPlaces) forCall() []place {
	out := slices.Clone(all.places)
	for i := range out {
		out[i].starts = slices.Clone(out[i].starts)
	}
	return out
}

// join notes that what p names may be where another argument begins.
func (o *place) join(p spelled) (news bool) {
	if p.home {
		return false
	}
	if p.abs {
		news = len(p.parts) < len(o.parts) && o.begin(p.parts)
	}
	for i, is := range o.starts {
		if n := i + len(p.parts); (is || p.up && i <= o.climb) && n > i && n < len(o.parts) && under(o.parts[i:], p.parts) && !o.starts[n] {
			o.starts[n], news = true, true
		}
	}
	return news
}

// touched reports whether p is o or lies in it; with above also whether o lies
// in p. With unknown nothing is known of where p begins.
func (o *place) touched(p named, above, unknown bool) bool {
	meets := func(rest []string) bool { return under(p.parts, rest) || above && under(rest, p.parts) }
	switch {
	case p.abs && meets(o.parts), o.touchedBelow(p, above):
		return true
	case p.home: // such a directory is at most C:/Users/kim
		for i := 1; i < 4 && i < len(o.parts); i++ {
			if (p.user == "" || p.user == o.parts[i-1]) && meets(o.parts[i:]) {
				return true
			}
		}
	}
	return o.ends(p, unknown || p.away)
}

// touchedBelow is touched for a path from each directory that it may begin in.
func (o *place) touchedBelow(p named, above bool) bool {
	for i, is := range o.starts {
		if rest := o.parts[i:]; p.home || !is && (!p.up || i > o.climb) || p.abs && len(rest) == 0 {
			continue
		} else if under(p.parts, rest) || above && !p.abs && !(p.bare && (i == 0 || o.program)) && under(rest, p.parts) {
			return true
		}
	}
	return false
}

// ends reports whether a path ends as o does: in its name, where that is a file's, or in its
// directory's name and its own.
func (o *place) ends(p named, unknown bool) bool {
	n, m := len(p.parts), len(o.parts)
	if o.program || p.foreign || n == 0 {
		return false
	}
	if o.file && p.parts[n-1] == o.parts[m-1] && (n == 1 || unknown) {
		return true
	}
	for i := 1; i < n && m > 1 && (!p.abs || unknown); i++ {
		if p.parts[i-1] == o.parts[m-2] && p.parts[i] == o.parts[m-1] {
			return true
		}
	}
	return false
}

// under reports whether p begins with dir.
func under(p, dir []string) bool {
	return len(p) >= len(dir) && slices.Equal(p[:len(dir)], dir)
}

// endpoint returns host and port of a lower-cased URL, every name of this
// machine as one; "" if it is no URL with a host. It reads as the most generous
// client does: any number of slashes of either kind after the scheme, numbers
// for addresses, ports with leading zeros.
func endpoint(s string) string {
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || !slices.Contains([]string{"http", "https", "ws", "wss"}, scheme) {
		return ""
	}
	rest = strings.TrimLeft(rest, `/\`)
	if i := strings.IndexAny(rest, `/?#\`); i >= 0 {
		rest = rest[:i]
	}
	host, port := percentDecode(rest[strings.LastIndexByte(rest, '@')+1:]), ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.Contains(host[i:], "]") {
		host, port = host[:i], strings.TrimLeft(host[i+1:], "0")
	}
	if port == "" {
		if port = "80"; scheme == "https" || scheme == "wss" {
			port = "443"
		}
	}
	host = strings.TrimSuffix(text.Fold(host, text.Compatible), ".")
	if ip, ok := provenance.Address(host); ok {
		if host = ip.String(); ip.IsLoopback() || ip.IsUnspecified() {
			host = "localhost"
		}
	} else if strings.HasSuffix(host, ".localhost") {
		host = "localhost"
	}
	return host + ":" + port
}

// percentDecode resolves %XX. What is not an escape stays as it is.
func percentDecode(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	hex := func(c byte) int { return strings.IndexByte("0123456789abcdef", c|0x20) }
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && hex(s[i+1]) >= 0 && hex(s[i+2]) >= 0 {
			b.WriteByte(byte(hex(s[i+1])<<4 | hex(s[i+2])))
			i += 2
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// protectedNames are files by which version control, continuous integration, an
// agent or the machine takes orders, and which do not begin with a dot. All that Writ
// connects are among them: a test of package clients reads where it finds them.
var protectedNames = map[string]bool{
	"agents.md": true, "claude.md": true, "gemini.md": true, "copilot-instructions.md": true, "mcp.json": true,
	"jenkinsfile": true, "azure-pipelines.yml": true, "azure-pipelines.yaml": true, "bitbucket-pipelines.yml": true,
	"appveyor.yml": true, "cloudbuild.yaml": true, "cloudbuild.yml": true, "buildspec.yml": true, "buildspec.yaml": true,
	"opencode.json": true, "opencode.jsonc": true, "claude_desktop_config.json": true, "mcp_config.json": true, "qwen.md": true,
	"agent.md": true, "codex.md": true, "crush.md": true, "crush.json": true, "warp.md": true, "nodemon.json": true, "lefthook.yml": true, "lefthook.yaml": true, "git~1": true, "github~1": true,
	"crontab": true, "crontabs": true, "cron.d": true, "cron.hourly": true, "cron.daily": true, "cron.weekly": true, "cron.monthly": true,
	"launchagents": true, "launchdaemons": true, "authorized_keys": true, "sudoers": true, "sudoers.d": true,
}

// protectedFamily are the same under a longer name: CLAUDE.local.md.
var protectedFamily = text.Pattern(`^(?:(?:agents?|claude|codex|crush|gemini|qwen|warp)\..*md|jenkinsfile\..*)$`)

// steering refuses what an act would write to a file that other programs take
// orders from (R34): its targets, and what a source brings into a directory.
// A contract that declares no target writes to its selectors, and so does text
// that nobody vouches for. A target that is a directory is where the act works, or in a
// draft, which knows no selectors, what it takes away: with such a file somewhere in it a
// person says which.
func (j *judge) steering(local bool, against func(string, writ.Reason)) {
	if j.d.Effect&policy.Write == 0 && !local {
		return
	}
	target, into := false, false
	for _, l := range j.leaves {
		if l.role == policy.Target && !l.answer && !l.key {
			target = target || l.rule != nil
			into = into || strings.HasSuffix(l.text, "/") || slices.ContainsFunc(j.in.Resolved[l.pointer], isDirectory)
		}
	}
	for _, l := range j.leaves {
		if !l.isText || l.role != policy.Target && l.role != policy.Selector {
			continue
		}
		led := j.in.Resolved[l.pointer]
		var bad bool
		if l.role == policy.Target || local || !target {
			paths, _ := Paths(l.text)
			if l.role == policy.Target && l.rule != nil {
				led = slices.DeleteFunc(slices.Clone(led), func(s string) bool { return below(s, led) })
			}
			bad = slices.ContainsFunc(append(paths, led...), j.protected)
			if !bad && j.kept == keptNot && slices.ContainsFunc(j.in.Resolved[l.pointer], j.protected) {
				against(l.pointer, writ.FormBrings)
			}
		} else {
			paths, _ := Paths(l.text)
			bad = slices.ContainsFunc(led, func(dir string) bool { return isDirectory(dir) && brings(dir, led) }) ||
				into && slices.ContainsFunc(paths, func(s string) bool {
					p := spell(s)
					return len(p.parts) > 0 && !p.foreign && protectedName(p.parts[len(p.parts)-1])
				})
		}
		if bad {
			against(l.pointer, writ.FormDotFile)
		}
	}
}

// below reports whether a path lies below a directory that the door found.
func below(path string, found []string) bool {
	return slices.ContainsFunc(found, func(dir string) bool { return isDirectory(dir) && len(path) > len(dir) && strings.HasPrefix(path, dir) })
}

// isDirectory reports whether the door found a directory there.
func isDirectory(resolved string) bool { return strings.HasSuffix(resolved, "/") }

// brings reports whether the door found a protected name below a directory.
func brings(dir string, found []string) bool {
	return slices.ContainsFunc(found, func(s string) bool {
		below, ok := strings.CutPrefix(s, dir)
		return ok && protectedPath(spell(below).parts)
	})
}

// protected reports whether a path goes through a protected name, below the
// directory the operator gave the server if it lies in one.
func (j *judge) protected(path string) bool {
	p := spell(path)
	for _, b := range j.in.Bases {
		if dir := spell(strings.ReplaceAll(b, `\`, "/")).parts; p.abs && under(p.parts, dir) && !protectedPath(p.parts[len(dir):]) {
			return false
		}
	}
	return !p.foreign && protectedPath(p.parts)
}

// protectedIn are names that are protected in such a directory, and common elsewhere.
var protectedIn = [][]string{{"zed", "settings.json"}, {"zed", "tasks.json"}, {"code", "user", "settings.json"}, {"code", "user", "tasks.json"}}

// protectedPath reports whether a path goes through a protected name.
func protectedPath(parts []string) bool {
	for i, name := range parts {
		if protectedName(name) || slices.ContainsFunc(protectedIn, func(at []string) bool { return under(parts[i:], at) }) {
			return true
		}
	}
	return false
}

// Steers reports whether a file or directory of that name, or whatever a path goes
// through, is one by which other programs take orders (R34).
func Steers(path string) bool { return protectedPath(spell(path).parts) }

// protectedName reports whether a folded name is that of a dot-file, or one of
// the others by which programs take orders. What only keeps a directory is none, nor what lists
// the files that a program leaves out, or says how lines are indented: nothing runs by these, and who
// writes there can write what is left out elsewhere too.
func protectedName(name string) bool {
	switch name {
	case ".ds_store", ".gitkeep", ".keep", ".localized", ".nojekyll",
		".gitignore", ".dockerignore", ".npmignore", ".eslintignore", ".prettierignore", ".stylelintignore", ".editorconfig":
		return false
	}
	return strings.HasPrefix(name, ".") && strings.Trim(name, ".") != "" || protectedNames[name] || protectedFamily().MatchString(name)
}
