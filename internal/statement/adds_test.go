package statement_test

import (
	"database/sql"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/statement"
	"github.com/writ-project/writ/internal/strictjson"
)

//go:embed testdata/adds.txt
var added string

// TestAdds: each statement of adds.txt has the parts that stand behind it, in both dialects.
func TestAdds(t *testing.T) {
	for line := range strings.Lines(added) {
		line = strings.TrimSpace(line)
		at := strings.LastIndex(line, " -> ")
		if at < 0 || line[0] == '#' {
			continue
		}
		s, want := line[:at], line[at+len(" -> "):]
		if s[0] == '"' {
			var err error
			if s, err = strconv.Unquote(s); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		for _, d := range []statement.Dialect{statement.SQLite, statement.Postgres} {
			got := "-"
			if parts, ok := statement.Adds(d, s); ok {
				got = string(parts.Raw())
			}
			if got != want && (d == statement.SQLite || want == "-") {
				t.Errorf("%s: %s: got %s, want %s", d, s, got, want)
			}
		}
		if _, ok := statement.Adds("mysql", s); ok {
			t.Error("another dialect:", s)
		}
	}
	long := "INSERT INTO t (a) VALUES (1)" + strings.Repeat(", (1)", 20)
	if _, ok := statement.Adds(statement.SQLite, long); ok {
		t.Error("21 rows")
	}
	if _, ok := statement.Adds(statement.SQLite, strings.TrimSuffix(long, ", (1)")); !ok {
		t.Error("20 rows are few")
	}
}

// TestAddsToSQLite holds what is taken apart to what SQLite does: whatever stood there stands there as it did, and
// a row that is new has the values of the parts.
func TestAddsToSQLite(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	words := strings.Fields(`INSERT INTO orders ( id , note ) VALUES ( 7 , 'x' ) , ; CREATE TABLE IF NOT EXISTS t2 note TEXT INTEGER PRIMARY KEY DEFAULT 5 'it''s' -12.50 NULL
		ALTER TABLE ADD COLUMN kind UNIQUE ( 3 ) "note" UPDATE SET = DELETE FROM WHERE total 'DROP' REPLACE OR ON CONFLICT SELECT RETURNING -- /* orders.note lower(`)
	wholes := []string{
		"INSERT INTO orders ( id , note ) VALUES ( 9 , 'it''s' ) , ( 10 , NULL )", "INSERT INTO orders ( note , total ) VALUES ( 'x' , -12.50 ) ;",
		"CREATE TABLE IF NOT EXISTS t2 ( id INTEGER PRIMARY KEY , note TEXT DEFAULT 'x' )", "CREATE TABLE orders ( note TEXT )", "ALTER TABLE orders ADD COLUMN kind TEXT DEFAULT 5",
	}
	ran := 0
	for range 3000 {
		s := strings.Fields(wholes[r.IntN(len(wholes))])
		for range r.IntN(3) {
			switch i := r.IntN(len(s)); r.IntN(3) {
			case 0:
				s[i] = words[r.IntN(len(words))]
			case 1:
				s = slices.Insert(s, i, words[r.IntN(len(words))])
			default:
				if len(s) > 1 {
					s = slices.Delete(s, i, i+1)
				}
			}
		}
		text := strings.Join(s, " ")
		parts, ok := statement.Adds(statement.SQLite, text)
		if !ok {
			continue
		}
		db, err := sql.Open("sqlite", ":memory:")
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		if _, err := db.Exec("CREATE TABLE orders (id INTEGER PRIMARY KEY, note TEXT, total REAL); INSERT INTO orders VALUES (1, 'a', 2.5), (2, 'b', NULL); CREATE TABLE other (id, note); INSERT INTO other VALUES (1, 'o')"); err != nil {
			t.Fatal(err)
		}
		before := dump(t, db)
		if _, err := db.Exec(text); err == nil {
			ran++
			after := dump(t, db)
			for _, row := range before {
				if i := slices.Index(after, row); i >= 0 {
					after = slices.Delete(after, i, i+1)
				} else {
					t.Errorf("%s: %s is gone", text, row)
				}
			}
			if kind, _ := parts.Get("adds").Text(); kind == "row" {
				if want := rowsOf(parts); len(after) != len(want) {
					t.Errorf("%s: new are %v, its parts %v", text, after, want)
				} else {
					for _, w := range want {
						if !slices.ContainsFunc(after, func(row string) bool {
							return !slices.ContainsFunc(w, func(v string) bool { return !strings.Contains(row, v) })
						}) {
							t.Errorf("%s: no new row has %v: %v", text, w, after)
						}
					}
				}
			} else if len(after) > 0 {
				t.Errorf("%s: rows are new: %v", text, after)
			}
		}
		db.Close()
	}
	if ran < 300 {
		t.Errorf("SQLite took %d statements", ran)
	}
}

// rowsOf are the values of parts, each row's as SQLite writes them.
func rowsOf(parts strictjson.Value) (out [][]string) {
	for _, row := range parts.Get("values").Elements() {
		var values []string
		for _, v := range row.Elements() {
			if text, is := v.Text(); is {
				values = append(values, strings.TrimSuffix(strings.ReplaceAll(text, "'", "''"), "0"))
			} else {
				values = append(values, "NULL")
			}
		}
		out = append(out, values)
	}
	return out
}

// dump are the rows of two tables, but for columns that are new.
func dump(t *testing.T, db *sql.DB) (out []string) {
	t.Helper()
	for _, q := range []string{"SELECT 'orders', quote(id), quote(note), quote(total) FROM orders", "SELECT 'other', quote(id), quote(note), '' FROM other"} {
		rows, err := db.Query(q)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var a, b, c, d string
			if err := rows.Scan(&a, &b, &c, &d); err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprint(a, " ", b, " ", c, " ", d))
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}
