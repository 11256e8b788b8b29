/** Whose SQL it is: they quote differently, and have their own statements with a body. */
export type Syntax = 'postgres' | 'sqlite'

export interface Statement {
  /** As written, without the semicolon. */
  readonly text: string
  /** Its tokens with one space between them, without comments. */
  readonly bare: string
}

// In Postgres, E'…' has escapes and $tag$…$tag$ has none.
const quoted = {
  postgres: /e'(?:[^'\\]|\\[\s\S]|'')*(?:'|$)|'[^']*(?:'|$)|"[^"]*(?:"|$)|\$((?:[a-z_]\w*)?)\$[\s\S]*?(?:\$\1\$|$)/iy,
  sqlite: /'[^']*(?:'|$)|"[^"]*(?:"|$)|`[^`]*(?:`|$)|\[[^\]]*(?:\]|$)/y,
}
const lineComment = /--[^\n]*/y
const commentBound = /\/\*|\*\//g
const wordOrOther = /[a-z_\u0080-\uffff][\w$\u0080-\uffff]*|\s+|[\s\S]/iy

/** Statements whose body contains statements, by what precedes the body. They end with the END of their BEGIN. */
const bodies = {
  postgres: /^create (or replace )?(function|procedure) .*begin atomic$/i,
  sqlite: /^create (temp |temporary )?trigger .*begin$/i,
}

/** Splits SQL into its statements. Quotes that are left open are the database's to reject. */
export function splitStatements(sql: string, syntax: Syntax): readonly Statement[] {
  const statements: Statement[] = []
  let [start, depth] = [0, 0]
  let tokens: string[] = []
  const end = (at: number) => {
    statements.push({ text: sql.slice(start, at), bare: tokens.join(' ') })
    start = at + 1
    tokens = []
  }
  for (let at = 0; at < sql.length; ) {
    const token = tokenAt(sql, at, syntax)
    if (token === ';' && depth === 0) end(at)
    else if (!/^(\s|--|\/\*)/.test(token)) tokens.push(token)
    if (depth > 0) depth += /^(case|begin)$/i.test(token) ? 1 : /^end$/i.test(token) ? -1 : 0
    else if (/^(begin|atomic)$/i.test(token) && bodies[syntax].test(tokens.join(' '))) depth = 1
    at += token.length
  }
  end(sql.length)
  return statements
}

function tokenAt(sql: string, at: number, syntax: Syntax): string {
  if (sql.startsWith('/*', at)) return sql.slice(at, endOfComment(sql, at, syntax === 'postgres'))
  const [token] = match(lineComment, sql, at) ?? match(quoted[syntax], sql, at) ?? match(wordOrOther, sql, at) ?? []
  return token as string
}

function match(pattern: RegExp, sql: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(sql)
}

/** Postgres' comments nest. */
function endOfComment(sql: string, at: number, nests: boolean): number {
  let depth = 0
  for (let found = match(commentBound, sql, at); found !== null; found = commentBound.exec(sql)) {
    if (found[0] === '*/') depth--
    else if (nests || depth === 0) depth++
    if (depth === 0) return commentBound.lastIndex
  }
  return sql.length
}
