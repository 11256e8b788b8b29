import { WebhookError } from '../../errors.ts'

const invalid = (problem: string, cause?: unknown) =>
  new WebhookError('invalid_transaction', `context.transaction: ${problem}`, { cause })

const usedTooLate =
  'the database was used after its transaction had ended. Run every query in the function of the transaction'
const notSynchronous =
  'the function returned a promise, or a query that it did not run. It must be synchronous, and run its queries itself'
const endsTransaction =
  'the function must not begin or end a transaction. To undo a part of its writes, use a savepoint'

/**
 * Guards the inbox's connection while handlers use it. The client, and every statement and cursor that comes from it, works
 * while the function of a transaction runs, and until a statement ends the transaction: what came after that would be
 * committed by itself. Functions are synchronous, so no two of them overlap and all of them can share one client.
 */
export class LentClient {
  readonly #client: object
  readonly #guards = new WeakMap<object, object>()
  readonly #cursors = new Set<Cursor>()
  /** Set while a function runs: returns `true` if its transaction still has what the inbox wrote in it. */
  #isIntact: (() => boolean) | undefined
  /** The error with which SQLite rolled the transaction back, such as that of a full disk. */
  #rolledBack: { readonly error: unknown } | undefined

  constructor(connection: object) {
    this.#client = this.#guard(connection)
  }

  /** Runs a function with the client. Throws if it is not synchronous, or if a statement has ended the transaction. */
  lend<Result>(isIntact: () => boolean, run: (client: never) => Result): Result {
    this.#isIntact = isIntact
    try {
      const result = run(this.#client as never)
      if (this.#rolledBack !== undefined) throw this.#rolledBack.error
      checkSynchronous(result)
      return result
    } finally {
      this.#isIntact = undefined
      this.#rolledBack = undefined
      this.#closeCursors()
    }
  }

  /** An open cursor keeps its snapshot: once another connection has written, this one could not write any more. */
  #closeCursors(): void {
    for (const cursor of this.#cursors) close(cursor)
    this.#cursors.clear()
  }

  #guard(target: object): object {
    const known = this.#guards.get(target)
    if (known !== undefined) return known
    // Not the target itself, whose frozen properties a proxy could not guard.
    const shadow = typeof target === 'function' ? () => {} : Object.create(Object.getPrototypeOf(target))
    const guard = new Proxy(shadow, {
      get: (_, name) => {
        const value = Reflect.get(target, name, target)
        if (typeof value !== 'function' || name === 'constructor') return this.#guardHandle(value)
        return (...args: unknown[]) => this.#call(() => Reflect.apply(value, target, args), name, args)
      },
      set: (_, name, value) => Reflect.set(target, name, value, target),
      has: (_, name) => Reflect.has(target, name),
      // The function that `transaction` of better-sqlite3 returns.
      apply: (_, self, args) => this.#call(() => Reflect.apply(target as () => unknown, self, args)),
    })
    this.#guards.set(target, guard)
    return guard
  }

  #call(run: () => unknown, name?: PropertyKey, args: readonly unknown[] = []): unknown {
    if (this.#isIntact === undefined) throw invalid(usedTooLate)
    if (this.#rolledBack !== undefined) {
      const { error } = this.#rolledBack
      throw invalid(`SQLite has rolled the transaction back: ${Object(error).message}`, error)
    }
    if (name === 'close' || name === Symbol.dispose) throw invalid('the function must not close the database')
    if (controlsTransaction(name, args[0])) throw invalid(endsTransaction)
    try {
      return this.#guardHandle(run(), name === 'iterate')
    } catch (error) {
      if (!this.#hasRecord()) this.#rolledBack ??= { error }
      throw error
    }
  }

  #hasRecord(): boolean {
    try {
      return this.#isIntact?.() === true
    } catch {
      return false
    }
  }

  #guardHandle(value: unknown, canDrain = false): unknown {
    if (!isHandle(value)) return value
    if (isFunction(value, 'next')) this.#cursors.add({ rows: value as unknown as Iterator<unknown>, canDrain })
    return this.#guard(value)
  }
}

interface Cursor {
  readonly rows: Iterator<unknown>
  /** `true` for an iterator of libsql, which has no `return`: it is closed by its last row. */
  readonly canDrain: boolean
}

function close({ rows, canDrain }: Cursor): void {
  try {
    if (rows.return !== undefined) rows.return()
    else if (canDrain) while (rows.next().done !== true);
  } catch {
    // A cursor that fails is closed.
  }
}

const isFunction = (value: unknown, name: string): boolean => typeof Object(value)[name] === 'function'

/** Returns `true` for what runs queries: a connection, a statement, a cursor or a function. Rows have no functions. */
const isHandle = (value: unknown): value is object =>
  typeof value === 'function' ||
  (typeof value === 'object' && ['next', 'all', 'exec', 'prepare', 'toArray'].some((name) => isFunction(value, name)))

/** Throws for a result with a `then`, without calling it: that would run a lazy query outside the transaction. */
function checkSynchronous(result: unknown): void {
  if (!isFunction(result, 'then')) return
  try {
    // No code awaits it, and it may reject later.
    Promise.prototype.then.call(result, undefined, () => {})
  } catch {
    // Not a promise: a query that has not run.
  }
  throw invalid(notSynchronous)
}

/** Matches SQL with a statement that begins or ends a transaction. */
const controlSql = /(^|;)\s*(begin|commit|end|rollback(?!\s+(transaction\s+)?to\b))\b/i
const quotedOrComment = /'[^']*'|"[^"]*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|\/\*[\s\S]*?(\*\/|$)/g

function controlsTransaction(name: PropertyKey | undefined, sql: unknown): boolean {
  // node:sqlite also takes a template of SQL.
  const text = Array.isArray(sql) && 'raw' in sql ? sql.join('?') : sql
  if (typeof text !== 'string' || (text === sql && name !== 'exec' && name !== 'prepare')) return false
  if (/inbox_handler/i.test(text)) return true
  const bare = text.replace(quotedOrComment, ' ')
  // The body of a trigger is statements up to an END.
  const isTrigger = /\bcreate\s+(temp\s+|temporary\s+)?trigger\b/i.test(bare)
  return controlSql.test(isTrigger ? bare.replace(/\b(begin|end)\b/gi, ' ') : bare)
}
