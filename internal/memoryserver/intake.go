package memoryserver

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/ask/screen"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/memory"
)

// Intake is what is done to every text before the memory is asked, whoever
// brings it. The zero Intake does nothing.
type Intake struct {
	secrets []string
	// Screen reads what is proposed, nil for none. What it halts is quarantined
	// or blocked, as Action says; a proposal that is no observation has no
	// quarantine, and is blocked.
	Screen *screen.Screen
	Action memory.Screening
}

const maxSecrets = 256

// AddSecret adds a value that must not be stored. A value that could not be
// kept out is an error, which does not repeat it: nothing may start without what it
// was told to hide. A short one would be found everywhere.
func (i *Intake) AddSecret(value string) error {
	switch {
	case len(value) < 4:
		return errors.New("a secret has at least 4 bytes")
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return errors.New("a secret is UTF-8 without NUL")
	case strings.Contains(memory.Mark, value):
		return errors.New("a secret is no part of what stands in its place")
	case slices.Contains(i.secrets, value):
		return nil
	case len(i.secrets) == maxSecrets:
		return errors.New("at most 256 secrets")
	}
	i.secrets = append(i.secrets, value)
	// The longest first: one may be a part of another.
	slices.SortFunc(i.secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return nil
}

// Redact replaces every secret in every text of a JSON value. Where there
// is none it returns the same bytes.
func (i *Intake) Redact(value []byte) []byte { return memory.Redact(value, i.secrets) }

// RedactText is Redact of one text.
func (i *Intake) RedactText(text string) string { return memory.RedactText(text, i.secrets) }

// Of is what the memory is told of a proposal beside what the channel knows.
func (i *Intake) Of(c memory.Context, p writ.Proposal) memory.Context {
	c.Secrets = i.secrets
	if i.Screen != nil && i.halts(p.Payload) {
		c.Screened = i.Action
		if _, observes := memory.Cites(p); !observes || i.Action != memory.ScreenQuarantine {
			c.Screened = memory.ScreenBlock
		}
	}
	return c
}

// halts reports whether the screen halts the texts of a payload. They are read
// together, as far as the screen reads at once: words that were set apart in
// several of them are words all the same.
func (i *Intake) halts(payload []byte) bool {
	var text strings.Builder
	halted := false
	flush := func() {
		halted = halted || text.Len() > 0 && i.Screen.Check(text.String()).Halt()
		text.Reset()
	}
	add := func(t string) {
		if text.Len()+len(t)+1 > screen.MaxText {
			flush()
		}
		if text.Len() > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(t)
	}
	chosen := func(name string) bool { return name == "parsed_payload" || name == "qualifiers" }
	strictjson.Walk(payload, func(_ []string, leaf []byte) bool {
		if t, ok := strictjson.Text(leaf); ok {
			add(t)
		}
		return true
	}, func(path []string, name string) bool {
		if slices.ContainsFunc(path, chosen) { // the names in there are of the caller's own choosing
			add(name)
		}
		return true
	})
	flush()
	return halted
}
