import { WebhookError } from '../../errors.ts'

const invalid = (problem: string, cause?: unknown) =>
  new WebhookError('invalid_transaction', `context.transaction: ${problem}`, { cause })

const usedTooLate = 'the database was used after the transaction ended. Run every query inside the function'
const notSynchronous =
  'the function returned a promise, or a query it did not run. It must be synchronous and run its own queries'
const endsTransaction = 'the function must not begin or end a transaction. Use a savepoint to undo part of its writes'

/**
 * Guards the inbox's connection while handlers use it. The client, with every statement and cursor that comes from it,
 * works until the transaction's function returns or a statement ends the transaction: anything later would autocommit.
 * Functions are synchronous, so they can't overlap and can share one client.
 */
export class LentClient {
  readonly #client: object
  readonly #guards = new WeakMap<object, object>()
  readonly #cursors = new Set<Iterator<unknown>>()
  /** Set while a function runs. True if the transaction still contains the inbox's own write. */
  #isIntact: (() => boolean) | undefined
  /** The error that made SQLite roll back, such as a full disk. */
  #rolledBack: { readonly error: unknown } | undefined

  constructor(connection: object) {
    this.#client = this.#guard(connection)
  }

  /** Runs a function with the client. Throws if it isn't synchronous, or if a statement ended the transaction. */
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
      // An open cursor keeps its snapshot. After a write by another connection, this one could no longer write.
      for (const cursor of this.#cursors) close(cursor)
      this.#cursors.clear()
    }
  }

  #guard(target: object): object {
    const known = this.#guards.get(target)
    if (known !== undefined) return known
    // Not the target itself: a proxy can't replace its frozen properties.
    const shadow = typeof target === 'function' ? () => {} : Object.create(Object.getPrototypeOf(target))
    const guard = new Proxy(shadow, {
      get: (_, name) => {
        const value = Reflect.get(target, name, target)
        if (typeof value !== 'function' || name === 'constructor') return this.#guardHandle(value)
        return (...args: unknown[]) => this.#call(() => Reflect.apply(value, target, args), name, args)
      },
      set: (_, name, value) => Reflect.set(target, name, value, target),
      has: (_, name) => Reflect.has(target, name),
      // better-sqlite3's `transaction` returns a function.
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
      return this.#guardHandle(run())
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

  #guardHandle(value: unknown): unknown {
    if (!isHandle(value)) return value
    if (isFunction(value, 'next')) this.#cursors.add(value as unknown as Iterator<unknown>)
    return this.#guard(value)
  }
}

function close(cursor: Iterator<unknown>): void {
  try {
    // libsql's iterator has no `return`: reading the last row closes it.
    if (cursor.return !== undefined) cursor.return()
    else while (cursor.next().done !== true);
  } catch {
    // A failed cursor is closed.
  }
}

const isFunction = (value: unknown, name: string): boolean => typeof Object(value)[name] === 'function'

/** True for anything that runs queries: a connection, statement, cursor or function. Rows have no methods. */
const isHandle = (value: unknown): value is object =>
  typeof value === 'function' ||
  (typeof value === 'object' && ['next', 'all', 'exec', 'prepare', 'toArray'].some((name) => isFunction(value, name)))

/** Rejects a thenable without calling `then`: that would run a lazy query outside the transaction. */
function checkSynchronous(result: unknown): void {
  if (!isFunction(result, 'then')) return
  try {
    // Nobody awaits it, and it may reject later.
    Promise.prototype.then.call(result, undefined, () => {})
  } catch {
    // Not a promise: a query that hasn't run.
  }
  throw invalid(notSynchronous)
}

const controlSql = /(^|;)\s*(begin|commit|end|rollback(?!\s+(transaction\s+)?to\b))\b/i
const quotedOrComment = /'[^']*'|"[^"]*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|\/\*[\s\S]*?(\*\/|$)/g

function controlsTransaction(name: PropertyKey | undefined, sql: unknown): boolean {
  // node:sqlite also takes a tagged template.
  const text = Array.isArray(sql) && 'raw' in sql ? sql.join('?') : sql
  if (typeof text !== 'string' || (text === sql && name !== 'exec' && name !== 'prepare')) return false
  if (/inbox_handler/i.test(text)) return true
  const bare = text.replace(quotedOrComment, ' ')
  // A trigger's body ends with END.
  const isTrigger = /\bcreate\s+(temp\s+|temporary\s+)?trigger\b/i.test(bare)
  return controlSql.test(isTrigger ? bare.replace(/\b(begin|end)\b/gi, ' ') : bare)
}
