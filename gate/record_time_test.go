package gate

import (
	"testing"
	"time"
)

// TestRecordTime: a record's time is RFC 3339 in UTC to the millisecond, cut off.
func TestRecordTime(t *testing.T) {
	zone := time.FixedZone("", 5*3600+1800)
	for _, at := range []time.Time{{}, time.Unix(0, 0), time.Unix(0, 999_999), time.Unix(0, 1e6), time.Unix(1, 999_999_999), time.Unix(-1, 999_999_999),
		time.Date(2026, 11, 29, 16, 24, 44, 12_345_678, zone), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 5e6, time.UTC), time.Now()} {
		if got, want := RecordTime(at), at.UTC().Truncate(time.Millisecond).Format("2006-01-02T15:04:05.000Z"); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}
