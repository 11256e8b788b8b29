import {
  durableObjectStore,
  type ObjectNamespace,
  type ObjectState,
  StoreObject,
} from '../../../src/inbox/durable-object/cloudflare.ts'

// Carries out the steps of stores that the test names. Each has objects of its own.

interface Env {
  readonly KEYS: ObjectNamespace
}

const timeoutMs = 500
const broken = new Set<string>()
/** The stores of which the next answer is lost. */
const losing = new Set<string>()

/** The objects of a store that were asked, so that time can pass for them. */
const named = new Map<string, Set<string>>()

export class Keys extends StoreObject {
  readonly #state: ObjectState

  constructor(state: ObjectState) {
    super(state)
    this.#state = state
  }

  override async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url)
    if (pathname === '/') return super.fetch(request)
    // Time passes for its keys.
    this.#state.storage.sql.exec('UPDATE store_key SET expires_at = expires_at - ?', Number(pathname.slice(1)))
    return new Response()
  }
}

function namespaceOf({ KEYS }: Env, store: string): ObjectNamespace {
  const names = named.get(store) ?? new Set()
  named.set(store, names)
  return {
    idFromName(name) {
      names.add(`${store} ${name}`)
      return KEYS.idFromName(`${store} ${name}`)
    },
    get: (id) => ({
      async fetch(url, init) {
        if (broken.has(store)) throw new Error('no object')
        const answer = await KEYS.get(id).fetch(url, init)
        if (losing.delete(store)) throw new Error('the answer was lost')
        return answer
      },
    }),
  }
}

type Input = { readonly store: string; readonly step: string; readonly input: readonly never[] }

async function carryOut({ store, step, input }: Input, env: Env): Promise<unknown> {
  if (step === 'lose') return void losing.add(store)
  if (step === 'break') return void broken.add(store)
  if (step === 'advance') {
    const ask = (name: string) =>
      env.KEYS.get(env.KEYS.idFromName(name)).fetch(`https://object/${input[0]}`, { method: 'POST', body: '' })
    return void (await Promise.all([...(named.get(store) ?? [])].map(ask)))
  }
  const steps = durableObjectStore({ namespace: namespaceOf(env, store), timeoutMs })
  return (steps as unknown as Record<string, (...given: readonly never[]) => unknown>)[step]?.(...input)
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    try {
      return Response.json({ result: await carryOut((await request.json()) as Input, env) })
    } catch (error) {
      return Response.json({ error: `${error}` })
    }
  },
}
