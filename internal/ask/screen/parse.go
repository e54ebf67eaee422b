package screen

import (
	"crypto/sha256"
	_ "embed"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"

	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/internal/text"
)

// Fault is one defect of the operator's file, with its line and column.
type Fault = strictyaml.Fault

// The bounds of a file of patterns.
const (
	maxRules    = 500
	maxPattern  = 8 << 10 // bytes of one pattern, its words spelt out
	maxProgram  = 20_000  // RE2 instructions of one pattern
	maxReply    = 2_000
	patternHelp = "a reading holds only lower-case letters, digits and single spaces"
)

//go:embed default.yaml
var defaultFile []byte

// Default returns the built-in set: attacks on systems, weapons, self-harm and
// credential theft.
func Default() *Screen {
	s, faults := Parse("default.yaml", defaultFile)
	if len(faults) > 0 {
		panic("screen: " + faults[0].String()) // a test holds that there is none
	}
	return s
}

// The form of the file. Its description for operators stands in default.yaml.
type (
	fileForm struct {
		strictyaml.Place
		Version strictyaml.Whole                 `yaml:"version"`
		Words   strictyaml.Map[strictyaml.Words] `yaml:"words"`
		Classes strictyaml.Seq[classForm]        `yaml:"classes"`
	}
	classForm struct {
		strictyaml.Place
		ID     strictyaml.String        `yaml:"id"`
		Title  strictyaml.String        `yaml:"title"`
		Action strictyaml.String        `yaml:"action"`
		Reply  strictyaml.String        `yaml:"reply"`
		Except strictyaml.Words         `yaml:"except"`
		Rules  strictyaml.Seq[ruleForm] `yaml:"rules"`
	}
	ruleForm struct {
		strictyaml.Place
		ID       strictyaml.String `yaml:"id"`
		Patterns strictyaml.Words  `yaml:"patterns"`
		Except   strictyaml.Words  `yaml:"except"`
	}
)

// compiler turns the form into a Screen.
type compiler struct {
	*strictyaml.Reader
	words map[string]string
	rules int
}

// Parse reads an operator's set of patterns. The name of the file is only
// repeated in the faults. If there is a fault the Screen is nil, which halts
// everything: what is misspelt is never left out silently.
func Parse(file string, b []byte) (*Screen, []Fault) {
	c := &compiler{Reader: strictyaml.New(file), words: map[string]string{}}
	var form fileForm
	if !c.Read(b, "a set of patterns has at least the key classes", &form) {
		return nil, c.Faults()
	}
	s := c.file(&form)
	if c.Count() > 0 {
		return nil, c.Faults()
	}
	s.id = sha256.Sum256(b)
	return s, nil
}

func (c *compiler) file(f *fileForm) *Screen {
	c.FaultIf(f.Version.N != 1, f.At("version"), "version must be 1", "write version: 1")
	for _, e := range f.Words.Entries {
		if !identifier(e.Key.Value) {
			c.Fault(e.Key, "a name is lower-case letters, digits and underscores", "")
			continue
		}
		var alternatives []string
		for _, w := range e.Value.Items {
			if text, ok := c.expand(w); ok {
				alternatives = append(alternatives, text)
			}
		}
		c.words[e.Key.Value] = "(?:" + strings.Join(alternatives, "|") + ")"
	}
	s := &Screen{}
	ids := map[string]bool{}
	for i := range f.Classes.Items {
		s.classes = append(s.classes, c.class(&f.Classes.Items[i], ids))
	}
	c.FaultIf(len(s.classes) == 0, f.At("classes"), "no class", "a set without patterns would halt everything")
	c.FaultIf(c.rules > maxRules, f.At("classes"), "more than 500 rules", "")
	return s
}

func identifier(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_'
	})
}

// id reads the id of a class or a rule, unique among seen.
func (c *compiler) id(at *strictyaml.Node, s strictyaml.String, prefix string, seen map[string]bool) string {
	full := prefix + s.S
	switch {
	case !identifier(s.S):
		c.Fault(at, "an id is needed, of lower-case letters, digits and underscores", "")
	case seen[full]:
		c.Fault(at, "the id "+strictyaml.Word(full)+" stands twice", "")
	}
	seen[full] = true
	return full
}

func (c *compiler) class(f *classForm, ids map[string]bool) class {
	out := class{title: f.Title.S, reply: f.Reply.S}
	out.id = c.id(f.At("id"), f.ID, "", ids)
	c.FaultIf(f.Action.S != "halt", f.At("action"), "the action must be halt", "write action: halt; it is the only one")
	c.FaultIf(strings.TrimSpace(f.Title.S) == "" || len(f.Title.S) > 200, f.At("title"), "a title is needed", "a few words, for records and people")
	c.FaultIf(strings.TrimSpace(f.Reply.S) == "" || len(f.Reply.S) > maxReply, f.At("reply"), "a reply is needed, of at most 2000 bytes", "what the user is told")
	except := c.patterns(f.Except, true)
	for i := range f.Rules.Items {
		r := &f.Rules.Items[i]
		c.rules++
		out.rules = append(out.rules, rule{
			id:     c.id(r.At("id"), r.ID, out.id+".", ids),
			halt:   c.patterns(r.Patterns, false),
			except: append(c.patterns(r.Except, true), except...),
		})
		c.FaultIf(len(r.Patterns.Items) == 0, r.At("patterns"), "a rule needs a pattern", "")
	}
	c.FaultIf(len(out.rules) == 0, f.At("rules"), "a class needs a rule", "")
	return out
}

func (c *compiler) patterns(ws strictyaml.Words, excepts bool) (out []pattern) {
	for _, w := range ws.Items {
		if p, ok := c.pattern(w, excepts); ok {
			out = append(out, p)
		}
	}
	return out
}

// expand spells out the <names> of a pattern.
func (c *compiler) expand(w strictyaml.String) (string, bool) {
	var out strings.Builder
	for rest := w.S; ; {
		i := strings.IndexByte(rest, '<')
		if i < 0 {
			out.WriteString(rest)
			break
		}
		j := strings.IndexByte(rest[i:], '>')
		if j < 0 {
			c.Fault(w.Node, "a < without its >", "<name> stands for one of the words of that name")
			return "", false
		}
		name := rest[i+1 : i+j]
		text, ok := c.words[name]
		if !ok {
			c.Fault(w.Node, "no words are named "+strictyaml.Word(name), strictyaml.Nearest(name, slices.Collect(maps.Keys(c.words)))+"; names must stand above their use")
			return "", false
		}
		out.WriteString(rest[:i])
		out.WriteString(text)
		rest = rest[i+j+1:]
		if out.Len() > maxPattern {
			break
		}
	}
	if out.Len() > maxPattern {
		c.Fault(w.Node, "a pattern of more than 8 KiB", "")
		return "", false
	}
	return out.String(), true
}

// pattern compiles one pattern in its two forms. A $ at the end of an exception
// binds it to the end of a sentence.
func (c *compiler) pattern(w strictyaml.String, excepts bool) (pattern, bool) {
	text, ok := c.expand(w)
	if !ok {
		return pattern{}, false
	}
	last := ""
	if before, ok := strings.CutSuffix(text, "$"); ok && excepts && !strings.HasSuffix(before, `\`) {
		text, last = before, "$"
	}
	fail := func(message, hint string) (pattern, bool) {
		c.Fault(w.Node, message, hint)
		return pattern{}, false
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return fail("not a pattern RE2 can read", "see https://github.com/google/re2/wiki/Syntax")
	}
	folded, message := vet(tree)
	if message != "" {
		return fail(message, patternHelp)
	}
	if folded {
		text = tree.String()
	}
	words, err := regexp.Compile(" (?:" + text + ") " + last)
	if err != nil {
		return fail("not a pattern RE2 can read", "")
	}
	if prog, err := syntax.Compile(tree.Simplify()); err != nil || len(prog.Inst) > maxProgram {
		return fail("a pattern that is too large", "bound its repetitions")
	}
	if words.MatchString("  ") || words.MatchString("   ") {
		return fail("a pattern that matches everything", "it must name at least one word")
	}
	letters, err := regexp.Compile(squeeze(text))
	narrow, err2 := syntax.Parse(squeeze(text), syntax.Perl)
	if err != nil || err2 != nil {
		return fail("a pattern that cannot be read without its spaces", "write a space as a space, not inside \\Q")
	}
	return pattern{words, letters, needs(tree), needs(narrow)}, true
}

// readable reports whether a reading may have a character.
func readable(r rune) bool { return r == ' ' || letterOrDigit(r) }

// vet folds the letters of a pattern as the text's are folded, and says what in
// it no reading can ever match.
func vet(t *syntax.Regexp) (folded bool, message string) {
	const mark = "a pattern with a mark that no reading has"
	switch t.Op {
	case syntax.OpLiteral:
		for i, r := range t.Rune {
			f := foldRune(r)
			if len(f) != 1 || !readable(f[0]) {
				return false, mark
			}
			folded = folded || t.Rune[i] != f[0]
			t.Rune[i] = f[0]
		}
	case syntax.OpCharClass:
		for i := 0; i+1 < len(t.Rune); i += 2 {
			if r := t.Rune[i]; r == t.Rune[i+1] && (!readable(r) || unicode.IsUpper(r)) {
				return false, mark
			}
		}
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText:
		return false, "a pattern bound to the beginning or end of the text"
	}
	for _, sub := range t.Sub {
		f, message := vet(sub)
		if message != "" {
			return false, message
		}
		folded = folded || f
	}
	return folded, ""
}

// squeeze takes the spaces, what repeats them, and word boundaries out of a
// pattern that parses, for letters that were set apart without a sign of where
// words end.
func squeeze(p string) string {
	var out strings.Builder
	class := false
	for i := 0; i < len(p); i++ {
		switch {
		case p[i] == '\\' && i+1 < len(p):
			if i++; class || p[i] != 'b' && p[i] != 'B' {
				out.WriteString(p[i-1 : i+1])
			}
			continue
		case p[i] == '[' && !class:
			class = true
		case p[i] == ']':
			class = false
		case p[i] == ' ' && !class:
			i += len(repeats().FindString(p[i+1:]))
			continue
		}
		out.WriteByte(p[i])
	}
	return out.String()
}

// repeats is what says how often the one before it stands, its lazy form too.
var repeats = text.Pattern(`^(\{[^}]*\}|[?*+])\??`)
