import { WebhookError } from '../../errors.ts'
import { type Syntax, splitStatements } from '../../internal/split-statements.ts'

const word = (text: string) => new RegExp(`^(?:${text})$`, 'i')

/** Statements as {@link splitStatements} writes them. Others that start like one of these are refused. */
const patterns = {
  // Postgres' modes that a savepoint keeps, and SQLite's, which only say when it locks.
  begin: word(
    '(?:begin|start)(?: (?:work|transaction|deferred|immediate|exclusive|concurrent))*(?:(?: ,)? (?:read write|isolation level read (?:un)?committed|not deferrable))*',
  ),
  commit: word('(?:commit|end)(?: work| transaction)?(?: and no chain)?'),
  rollback: word('(?:rollback|abort)(?: work| transaction)?(?: and no chain)?'),
  toSavepoint: word('rollback(?: work| transaction)? to .*'),
}
/** Words without which SQL controls no transaction: most SQL needs no second look. */
const mayControl = /\b(begin|start|commit|end|rollback|abort|prepare)\b/i
const controls = /^(begin|start transaction|commit|end|rollback|abort|prepare transaction)\b/i

/** Returns true if the SQL begins or ends a transaction. */
export const controlsTransaction = (sql: string, syntax: Syntax): boolean =>
  mayControl.test(sql) && splitStatements(sql, syntax).some(({ bare }) => isControl(bare))

const isControl = (bare: string): boolean => controls.test(bare) && !patterns.toSavepoint.test(bare)

/**
 * Nests the transactions of a handler's SQL in the one that is open: BEGIN becomes a savepoint, and its COMMIT or ROLLBACK
 * that savepoint's.
 */
export class NestedTransactions {
  readonly #syntax: Syntax
  /** Names of the savepoints that are open. */
  #open: string[] = []
  #count = 0

  constructor(syntax: Syntax) {
    this.#syntax = syntax
  }

  /**
   * Returns the SQL to send, which may be what was given. Call it in the order in which the database gets the SQL.
   * @throws WebhookError `invalid_transaction` if it would end the transaction that is open, or has no nested form
   */
  nest(sql: string): string {
    if (!mayControl.test(sql)) return sql
    const open = [...this.#open]
    try {
      return splitStatements(sql, this.#syntax)
        .map(({ text, bare }) => this.#nest(bare) ?? text)
        .join(';')
    } catch (error) {
      // None of it is sent.
      this.#open = open
      throw error
    }
  }

  /** @throws WebhookError `invalid_transaction` if a nested transaction is open */
  checkEnded(): void {
    if (this.#open.length > 0) throw invalid('the function began a transaction and did not end it')
  }

  #nest(bare: string): string | undefined {
    if (!isControl(bare)) return undefined
    if (patterns.begin.test(bare)) {
      const name = `media_webhooks_${++this.#count}`
      this.#open.push(name)
      return `SAVEPOINT ${name}`
    }
    const isCommit = patterns.commit.test(bare)
    if (!isCommit && !patterns.rollback.test(bare))
      throw invalid(`"${bare.slice(0, 80)}" cannot be part of the transaction that is open`)
    const name = this.#open.pop()
    if (name === undefined)
      throw invalid(`the function must not end the transaction that it runs in, as with ${bare.slice(0, 80)}`)
    return isCommit ? `RELEASE SAVEPOINT ${name}` : `ROLLBACK TO SAVEPOINT ${name}`
  }
}

export const invalid = (problem: string, cause?: unknown): WebhookError =>
  new WebhookError('invalid_transaction', `context.transaction: ${problem}`, { cause })
