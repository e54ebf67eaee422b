package words

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/writ-project/writ/memory"
)

// ErrChange says that no index makes such a change. Nothing was written.
var ErrChange = errors.New("memory index: not a change")

// MaxName is how many bytes a namespace, an id or a kind may have.
const MaxName = 1024

// Check refuses a change no index makes, with ErrChange: names that are empty,
// too long, not UTF-8 or that hold NUL (M07), an id that stands in it twice,
// and records that do not ascend. A text may be any bytes.
func Check(c memory.Change) error {
	if !name(c.Namespace) {
		return fmt.Errorf("%w: its namespace is no name", ErrChange)
	}
	if c.To <= c.From || c.To > math.MaxInt64 {
		return fmt.Errorf("%w: from record %d to %d", ErrChange, c.From, c.To)
	}
	ids := make(map[string]bool, len(c.Put)+len(c.Drop))
	once := func(id string) error {
		if !name(id) {
			return fmt.Errorf("%w: an id is no name", ErrChange)
		}
		if ids[id] {
			return fmt.Errorf("%w: %q stands in it twice", ErrChange, id)
		}
		ids[id] = true
		return nil
	}
	for _, d := range c.Put {
		if err := once(d.ID); err != nil {
			return err
		}
		if !name(d.Kind) {
			return fmt.Errorf("%w: the kind of %q is no name", ErrChange, d.ID)
		}
	}
	for _, id := range c.Drop {
		if err := once(id); err != nil {
			return err
		}
	}
	return nil
}

func name(s string) bool {
	return s != "" && len(s) <= MaxName && utf8.ValidString(s) && !strings.Contains(s, "\x00")
}
