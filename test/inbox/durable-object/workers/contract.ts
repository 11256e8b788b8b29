import { defineInbox } from '../../../../src/inbox/define-inbox.ts'
import { ObjectInbox } from '../../../../src/inbox/durable-object/inbox.ts'
import type { InboxDefinition } from '../../../../src/inbox/inbox.ts'
import type { ObjectNamespace, ObjectSql, ObjectState } from '../../../../src/internal/storage/durable-objects.ts'
import { everyFeature } from '../../../contract/every-feature.ts'
import { inboxContract } from '../../../contract/suites/inbox.ts'
import { expect } from './expect.ts'

// Runs the tests of the inbox's contract inside Durable Objects, each in a fresh one.

const limits = { concurrency: 16, maxWaiting: 10_000, maxDeadLetters: 10_000, ttlMs: 86_400_000 }

export class Contract {
  readonly #state: ObjectState
  #inbox: ObjectInbox | undefined

  constructor(state: ObjectState) {
    this.#state = state
  }

  async fetch(request: Request): Promise<Response> {
    const tests = new Map<string, () => Promise<void>>()
    const test = (name: string, run: () => Promise<void>) => tests.set(name, run)
    inboxContract(() => this.#subject(), { test, expect }, everyFeature)
    try {
      const { name } = (await request.json()) as { name: string }
      await (tests.get(name) as () => Promise<void>)()
      return new Response('passed')
    } catch (error) {
      return new Response(`${(error as Error).stack}`, { status: 500 })
    }
  }

  async alarm(): Promise<void> {
    await this.#inbox?.alarm()
  }

  #subject() {
    const { storage } = this.#state
    const { sql } = storage
    sql.exec('CREATE TABLE written (content TEXT)')
    const open: InboxDefinition['open'] = (host) => {
      this.#inbox = new ObjectInbox(host, storage, limits)
      return this.#inbox
    }
    return {
      inbox: defineInbox({ name: 'an object', expects: true, ordersStrictly: true, limits: true, open }),
      transactions: {
        write: (client: ObjectSql, text: string) => void client.exec('INSERT INTO written VALUES (?)', text),
        texts: () =>
          sql
            .exec('SELECT content FROM written')
            .toArray()
            .map(({ content }) => content as string),
      },
    }
  }
}

export default {
  async fetch(request: Request, { CONTRACT }: { CONTRACT: ObjectNamespace }) {
    const body = await request.text()
    return CONTRACT.get(CONTRACT.idFromName(body)).fetch('https://object/', { method: 'POST', body })
  },
}
