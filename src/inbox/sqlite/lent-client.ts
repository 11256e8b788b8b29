import { controlsTransaction, invalid, NestedTransactions } from '../sql/nested-transactions.ts'

const usedTooLate = 'the database was used after the transaction ended. Run every query inside the function'
const notSynchronous =
  'the function returned a promise, or a query it did not run. It must be synchronous and run its own queries'
const cannotNest = 'the function must not begin or end a transaction: this database has no savepoints'
const undoesRecord = 'the function must not use the savepoint of the inbox'

/**
 * Guards the inbox's connection while handlers use it. The client, with every statement and cursor that comes from it,
 * works until the transaction's function returns or SQLite rolls the transaction back: anything later would autocommit.
 * Transactions of the function become savepoints. Functions are synchronous, so they can't overlap and can share one client.
 */
export class LentClient {
  readonly #client: object
  readonly #hasSavepoints: boolean
  #nested = new NestedTransactions('sqlite')
  readonly #guards = new WeakMap<object, object>()
  readonly #cursors = new Set<Iterator<unknown>>()
  /** Set while a function runs. True if the transaction still contains the inbox's own write. */
  #isIntact: (() => boolean) | undefined
  /** The error that made SQLite roll back, such as a full disk. */
  #rolledBack: { readonly error: unknown } | undefined

  /** @param hasSavepoints false in a Durable Object, which rejects their SQL */
  constructor(connection: object, hasSavepoints = true) {
    this.#hasSavepoints = hasSavepoints
    this.#client = this.#guard(connection)
  }

  /** Runs a function with the client. Throws if it isn't synchronous, or if a statement ended the transaction. */
  lend<Result>(isIntact: () => boolean, run: (client: never) => Result): Result {
    this.#isIntact = isIntact
    this.#nested = new NestedTransactions('sqlite')
    try {
      const result = run(this.#client as never)
      if (this.#rolledBack !== undefined) throw this.#rolledBack.error
      checkSynchronous(result)
      this.#nested.checkEnded()
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
        // libsql's would send a BEGIN of its own.
        if (name === 'transaction') return (run: () => unknown) => this.#makeTransaction(run)
        return (...args: unknown[]) => this.#callMethod(target, value, name, args)
      },
      set: (_, name, value) => Reflect.set(target, name, value, target),
      has: (_, name) => Reflect.has(target, name),
      // better-sqlite3's `transaction` returns a function.
      apply: (_, self, args) => this.#call(() => Reflect.apply(target as () => unknown, self, args)),
    })
    this.#guards.set(target, guard)
    return guard
  }

  /** Calls a method of the connection, of a statement, or of what else comes from it. */
  #callMethod(
    target: object,
    method: (...args: never[]) => unknown,
    name: PropertyKey,
    args: readonly unknown[],
  ): unknown {
    const apply = (...given: readonly unknown[]) => this.#call(() => Reflect.apply(method, target, given))
    if (name === 'close' || name === Symbol.dispose) throw invalid('the function must not close the database')
    const sql = readSql(name, args)
    if (sql === undefined) return apply(...args)
    if (/inbox_handler/i.test(sql)) throw invalid(undoesRecord)
    if (!controlsTransaction(sql, 'sqlite')) return apply(...args)
    if (!this.#hasSavepoints) throw invalid(cannotNest)
    if (name === 'exec') return this.#call(() => Reflect.apply(method, target, [this.#nested.nest(sql)]))
    return name === 'prepare' ? makeControlStatement(() => this.#exec(sql)) : this.#exec(sql)
  }

  #exec(sql: string): unknown {
    return Reflect.get(this.#client, 'exec')(sql)
  }

  #makeTransaction(run: (...args: unknown[]) => unknown): object {
    const transact = (...args: unknown[]) => {
      this.#exec('BEGIN')
      try {
        const result = run(...args)
        checkSynchronous(result)
        this.#exec('COMMIT')
        return result
      } catch (error) {
        // SQLite may have rolled it back already.
        if (this.#rolledBack === undefined) this.#exec('ROLLBACK')
        throw error
      }
    }
    return Object.assign(transact, { default: transact, deferred: transact, immediate: transact, exclusive: transact })
  }

  #call(run: () => unknown): unknown {
    if (this.#isIntact === undefined) throw invalid(usedTooLate)
    if (this.#rolledBack !== undefined) {
      const { error } = this.#rolledBack
      throw invalid(`SQLite has rolled the transaction back: ${Object(error).message}`, error)
    }
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

/** Returns the SQL of a call: of `exec`, `prepare`, or a tagged template, which node:sqlite takes. */
function readSql(name: PropertyKey, [first]: readonly unknown[]): string | undefined {
  if (Array.isArray(first) && 'raw' in first) return first.join('?')
  return typeof first === 'string' && (name === 'exec' || name === 'prepare') ? first : undefined
}

/** A prepared BEGIN, COMMIT or ROLLBACK: which savepoint it means is known once it runs. */
function makeControlStatement(exec: () => unknown): object {
  const run = () => {
    exec()
    return { changes: 0, lastInsertRowid: 0 }
  }
  const all = () => {
    exec()
    return []
  }
  return { run, get: () => void exec(), all, iterate: () => all().values() }
}
