package memory

import (
	"errors"
	"time"
)

// Instant is a time in microseconds since 1970, UTC. It orders nothing: the
// order of what happened is that of the records.
type Instant int64

const instantForm = "2006-01-02T15:04:05.000000Z"

// maxInstant is the end of the year 9999.
const maxInstant Instant = 253_402_300_799_999_999

// InstantOf returns t, cut to the microsecond.
func InstantOf(t time.Time) Instant { return Instant(t.UTC().UnixMicro()) }

// Time returns i in UTC.
func (i Instant) Time() time.Time { return time.UnixMicro(int64(i)).UTC() }

// String returns RFC 3339 with microseconds and Z.
func (i Instant) String() string { return i.Time().Format(instantForm) }

// MarshalText writes what String returns.
func (i Instant) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText accepts what MarshalText writes and nothing else.
func (i *Instant) UnmarshalText(b []byte) error {
	t, err := time.Parse(instantForm, string(b))
	if err != nil || t.Format(instantForm) != string(b) || t.Year() < 1970 {
		return errors.New("memory: a time is written as 2006-01-02T15:04:05.000000Z")
	}
	*i = InstantOf(t)
	return nil
}

// parseTime reads an RFC 3339 time of a payload.
func parseTime(s string) (Instant, bool) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || len(s) > 40 || t.UTC().Year() < 1970 || t.UTC().Year() > 9999 {
		return 0, false
	}
	return InstantOf(t), true
}
