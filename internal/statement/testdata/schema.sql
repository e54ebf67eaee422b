CREATE TABLE customers (id integer PRIMARY KEY, name text, email text, city text, created_at timestamp, spent numeric(10,2), active boolean);
CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer, status text, total numeric(10,2), placed_on date, note text);
INSERT INTO customers VALUES (1, 'Ana Müller', 'ana@example.org', 'Bern', '2026-01-02 10:00:00', 120.50, true), (2, 'Bo', NULL, 'Genf', '2026-03-04 11:30:00', 0, false);
INSERT INTO orders VALUES (10, 1, 'open', 20.00, '2026-02-01', 'x'), (11, 1, 'sent', 100.50, '2026-02-03', NULL), (12, 2, 'open', 5, '2026-03-05', 'it''s late');
