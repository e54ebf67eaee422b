// In the place of the npm package sqlite3, which fetches or compiles its engine when it is
// installed: what mcp-server-sqlite-npx asks of it, of the SQLite within Node.js.
const { DatabaseSync } = require('node:sqlite');

exports.Database = class {
  constructor(file) {
    this.db = new DatabaseSync(file);
  }
  all(sql, params, done) {
    let rows;
    try {
      rows = this.db.prepare(sql).all(...params);
    } catch (err) {
      return done(err);
    }
    done(null, rows);
  }
};
