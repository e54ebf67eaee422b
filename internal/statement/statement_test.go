package statement_test

import (
	"bytes"
	"context"
	"database/sql"
	_ "embed"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/writ-project/writ/internal/statement"
	"github.com/writ-project/writ/internal/statement/throwaway"
)

var (
	//go:embed testdata/reads.txt
	reads string
	//go:embed testdata/not.txt
	not string
	//go:embed testdata/schema.sql
	schema string
	//go:embed words.txt
	table string
)

// lines are the statements of a file; one in quotation marks is a literal of Go.
func lines(t testing.TB, file string) (out []string) {
	for line := range strings.Lines(file) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		first, rest, _ := strings.Cut(line, " ")
		if !slices.Contains([]string{"both", "sqlite", "postgres"}, first) {
			first, rest = "", line
		}
		if rest[0] == '"' {
			text, err := strconv.Unquote(rest)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			rest = text
		}
		out = append(out, strings.TrimSpace(first+" "+rest))
	}
	return out
}

// accepted are the statements of reads.txt for a database, and refused those of not.txt,
// where a line that names no database is for both.
func accepted(t testing.TB, d statement.Dialect) []string { return of(d, lines(t, reads)) }

func refused(t testing.TB, d statement.Dialect) []string { return of(d, lines(t, not)) }

func of(d statement.Dialect, lines []string) (out []string) {
	for _, l := range lines {
		of, s, _ := strings.Cut(l, " ")
		switch of {
		case "both", string(d):
			out = append(out, s)
		case string(statement.SQLite), string(statement.Postgres):
		default:
			out = append(out, l)
		}
	}
	return out
}

var dialects = []statement.Dialect{statement.SQLite, statement.Postgres}

func TestReads(t *testing.T) {
	for _, d := range dialects {
		for _, s := range accepted(t, d) {
			if !statement.Reads(d, s) {
				t.Errorf("%s: does not read: %s", d, s)
			}
		}
		for _, s := range refused(t, d) {
			if statement.Reads(d, s) {
				t.Errorf("%s: reads: %s", d, s)
			}
		}
	}
	for _, s := range accepted(t, statement.SQLite) {
		if statement.Reads("", s) || statement.Reads("mysql", s) {
			t.Errorf("reads in a dialect that is none: %s", s)
		}
	}
}

// TestBounds: what is long or nests deep is not looked at, and ends at once.
func TestBounds(t *testing.T) {
	for _, s := range []string{
		"SELECT '" + strings.Repeat("x", statement.MaxStatement) + "'",
		"SELECT " + strings.Repeat("(", 4000) + "1" + strings.Repeat(")", 4000),
		"SELECT 1 FROM " + strings.Repeat("(SELECT 1 FROM ", 500) + "x" + strings.Repeat(") y", 500),
		strings.Repeat("(", 8000),
		strings.Repeat("SELECT(", 1000),
		"SELECT " + strings.Repeat("CASE WHEN ", 700),
		strings.Repeat("EXPLAIN (", 800),
	} {
		for _, d := range dialects {
			if statement.Reads(d, s) {
				t.Errorf("%s: reads: %.40s…", d, s)
			}
		}
	}
	if s := "SELECT id FROM customers WHERE id IN (1" + strings.Repeat(",1", 3000) + ") AND" + strings.Repeat(" NOT", 200) + " true"; !statement.Reads(statement.SQLite, s) {
		t.Error("a long list does not read")
	}
}

// mixed are statements made of pieces of those in the tables, what does harm among them,
// so that some are accepted.
func mixed(t testing.TB, d statement.Dialect, n int) (out []string) {
	r := rand.New(rand.NewPCG(1, 2))
	good := accepted(t, d)
	var pieces []string
	for _, s := range append(refused(t, d), good...) {
		pieces = append(pieces, strings.Fields(s)...)
	}
	for len(out) < n {
		words := strings.Fields(good[r.IntN(len(good))])
		for range 1 + r.IntN(3) {
			i := r.IntN(len(words) + 1)
			switch r.IntN(4) {
			case 0:
				words = slices.Insert(words, i, pieces[r.IntN(len(pieces))])
			case 1:
				words = slices.Delete(words, max(i-1, 0), min(i, len(words)))
			case 2: // the end of another
				other := strings.Fields(good[r.IntN(len(good))])
				words = append(words[:i:i], other[r.IntN(len(other)):]...)
			default:
				if i < len(words) {
					words[i] = pieces[r.IntN(len(pieces))]
				}
			}
		}
		if s := strings.Join(words, " "); statement.Reads(d, s) {
			out = append(out, s)
		}
	}
	return out
}

// sqlite is a database that nothing may be written to.
func sqlite(t testing.TB) *sql.Conn {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	c, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.ExecContext(context.Background(), schema+"PRAGMA query_only = 1"); err != nil {
		t.Fatal(err)
	}
	return c
}

// runs runs a statement, and has SQLite say what it is made of: writes says by what of it
// something would be written.
func runs(t testing.TB, c *sql.Conn, s string) (writes string, err error) {
	t.Helper()
	var addr, p1, p2, p3, p5 int
	var opcode string
	var p4, comment any
	for _, s := range []string{s, "EXPLAIN " + s} {
		rows, err := c.QueryContext(context.Background(), s)
		if err != nil {
			if strings.Contains(err.Error(), "readonly") {
				writes = err.Error()
			}
			return writes, err
		}
		for rows.Next() {
			if columns, _ := rows.Columns(); strings.HasPrefix(s, "EXPLAIN ") && len(columns) == 8 {
				if err := rows.Scan(&addr, &opcode, &p1, &p2, &p3, &p4, &p5, &comment); err != nil {
					t.Fatal(err)
				}
				if opcode == "Transaction" && p2 != 0 || slices.Contains([]string{"OpenWrite", "SetCookie", "JournalMode", "Checkpoint", "Vacuum", "Expire"}, opcode) {
					writes = opcode
				}
			}
		}
		err = rows.Err()
		if rows.Close(); err != nil || strings.HasPrefix(s, "EXPLAIN ") {
			return writes, err
		}
	}
	return writes, nil
}

// TestSQLite: SQLite runs each statement of the table, and by none of those that are
// accepted is anything written.
func TestSQLite(t *testing.T) {
	c := sqlite(t)
	for _, s := range accepted(t, statement.SQLite) {
		if writes, err := runs(t, c, s); writes != "" || err != nil {
			t.Errorf("%s: %v %s", s, err, writes)
		}
	}
	for _, s := range []string{"DELETE FROM customers RETURNING name", "WITH d AS (SELECT 1) INSERT INTO orders (id) SELECT * FROM d"} {
		if writes, _ := runs(t, c, s); writes == "" {
			t.Errorf("writes, and it is not seen: %s", s)
		}
	}
	ran := 0
	all := mixed(t, statement.SQLite, 2000)
	for _, s := range all {
		writes, err := runs(t, c, s)
		if writes != "" {
			t.Errorf("writes (%s): %s", writes, s)
		}
		if err == nil {
			ran++
		}
	}
	if ran < len(all)/10 {
		t.Errorf("of %d statements SQLite ran %d: the others say nothing", len(all), ran)
	}
}

// TestPostgres: PostgreSQL runs each statement of the table in a transaction that may not
// write, fails none of those that are accepted for writing, and calls no function that
// may be called volatile, but those that are named here.
func TestPostgres(t *testing.T) {
	_, psql := throwaway.Postgres(t)
	var in bytes.Buffer
	in.WriteString("SET client_min_messages = error;\n" + schema + `
CREATE SEQUENCE s;
CREATE TABLE given (n int, want text, sql text);
CREATE FUNCTION judged() RETURNS TABLE (sort text, said text) LANGUAGE plpgsql AS $f$
DECLARE g record;
BEGIN
  FOR g IN SELECT * FROM given ORDER BY n LOOP
    BEGIN
      EXECUTE g.sql;
      sort := 'ran'; said := '';
    EXCEPTION WHEN others THEN
      sort := 'failed'; said := SQLSTATE || ' ' || SQLERRM;
      IF SQLSTATE IN ('25006', '25001', '25P01', '2D000', '57014', '55P03') OR SQLERRM LIKE 'EXECUTE of %' THEN sort := 'writes'; END IF;
    END;
    IF sort <> g.want AND (g.want <> '' OR sort = 'writes') THEN said := 'BAD ' || said || ': ' || g.sql; END IF;
    RETURN NEXT;
  END LOOP;
END $f$;
`)
	n := 0
	give := func(s, want string) {
		n++
		fmt.Fprintf(&in, "INSERT INTO given VALUES (%d, '%s', convert_from(decode('%s', 'hex'), 'UTF8'));\n", n, want, hex.EncodeToString([]byte(s)))
	}
	in.WriteString("BEGIN;\n")
	for _, s := range accepted(t, statement.Postgres) {
		give(s, "ran")
	}
	for _, s := range mixed(t, statement.Postgres, 1000) {
		give(s, "")
	}
	for _, s := range []string{"WITH d AS (DELETE FROM customers RETURNING *) SELECT * FROM d", "SELECT 1; DROP TABLE customers", "SELECT * FROM customers FOR UPDATE", "SELECT nextval('s')", "COMMIT", "SELECT 1 AS a INTO x"} {
		give(s, "writes")
	}
	in.WriteString("COMMIT;\nSET statement_timeout = '20s';\nBEGIN READ ONLY;\nSELECT sort, count(*), min(said) FILTER (WHERE said LIKE 'BAD %') FROM judged() GROUP BY sort ORDER BY sort;\nCOMMIT;\n")
	in.WriteString("SELECT DISTINCT 'volatile', proname FROM pg_proc WHERE provolatile = 'v' AND proname IN (''")
	for line := range strings.Lines(table) {
		if list, words, ok := strings.Cut(line, ":"); ok && (list == "both" || list == "postgres" || list == "postgres from") {
			for _, w := range strings.Fields(words) {
				in.WriteString(",'" + w + "'")
			}
		}
	}
	// What they read can change under them; random has no other effect than the next one's.
	in.WriteString(") AND proname NOT IN ('random', 'pg_relation_size', 'pg_table_size', 'pg_indexes_size', 'pg_total_relation_size', 'pg_database_size');\n")
	psql.Stdin = &in
	out, err := psql.CombinedOutput()
	if err != nil {
		t.Fatalf("psql: %v\n%s", err, out)
	}
	ran := 0
	for line := range strings.Lines(string(out)) {
		if n, ok := strings.CutPrefix(line, "ran|"); ok {
			ran, _ = strconv.Atoi(strings.TrimRight(n, "|\n"))
		}
	}
	if bytes.Contains(out, []byte("BAD")) || bytes.Contains(out, []byte("volatile|")) || bytes.Contains(out, []byte("ERROR")) || ran < 150 {
		t.Errorf("%s", out)
	}
}

// FuzzReads: nothing that is accepted writes, whatever it is made of, and nothing is
// accepted that a space at its end changes.
func FuzzReads(f *testing.F) {
	for _, s := range append(accepted(f, statement.SQLite), refused(f, statement.SQLite)...) {
		f.Add(s)
	}
	c := sqlite(f)
	f.Fuzz(func(t *testing.T, s string) {
		for _, d := range dialects {
			if statement.Reads(d, s) != statement.Reads(d, s+" ") && len(s) < statement.MaxStatement {
				t.Errorf("%s: a space at the end makes it another: %q", d, s)
			}
		}
		if statement.Reads(statement.SQLite, s) {
			if writes, _ := runs(t, c, s); writes != "" {
				t.Errorf("writes (%s): %q", writes, s)
			}
		}
	})
}
