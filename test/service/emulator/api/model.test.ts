import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Profile, profiles } from '../../../../src/service/emulator/sending/profile.ts'
import { subscriptionFlags } from '../../../../src/service/emulator/workspace/webhooks.ts'
import { aUuid, serveApi } from './served-api.ts'

type Fields = Record<string, unknown>

/** This test's model of a resource: a plain array, oldest first. */
interface Model {
  readonly profile: Profile
  readonly path: string
  readonly plural: string
  readonly singular: string
  /** The existing records, as a list should show them. */
  records: (Fields & { id: string })[]
}

/** An operation, `seconds` after the previous one. `index` selects a record, or none when there are too few. */
type Operation = { readonly seconds: number } & (
  | { readonly kind: 'create'; readonly body: Fields }
  | { readonly kind: 'update'; readonly index: number; readonly body: Fields }
  | { readonly kind: 'delete'; readonly index: number }
  | { readonly kind: 'list'; readonly query: Fields }
)

// Few and similar, so that names and URLs repeat and searches match.
const name = fc.constantFrom('a', 'B', 'ab', 'AB', 'Ünit', 'b c', '🎬')
const url = fc.constantFrom('http://a.example/', 'http://b.example/', 'https://a.example/?x=1&y=2')
const flags = fc.record(Object.fromEntries(subscriptionFlags.map((flag) => [flag, fc.boolean()])), { requiredKeys: [] })
const index = fc.nat({ max: 12 })

const query = (sortFields: readonly string[], filters: fc.Arbitrary<Fields>) =>
  fc
    .tuple(
      fc.record(
        {
          offset: fc.nat({ max: 8 }),
          limit: fc.integer({ min: 1, max: 6 }),
          sort_by: fc.constantFrom(...sortFields),
          order_by: fc.constantFrom('asc', 'desc'),
          search: fc.constantFrom('', 'a', 'B', 'ü', 'c', 'zz', '%', ' '),
        },
        { requiredKeys: [] },
      ),
      filters,
    )
    .map(([paging, filter]) => ({ ...paging, ...filter }))

const seconds = fc.constantFrom(0, 0, 0.000001, 1)

const often = <Shape>(shape: { [Field in keyof Shape]: fc.Arbitrary<Shape[Field]> }) => ({
  weight: 3,
  arbitrary: fc.record(shape),
})

const webhookOperation: fc.Arbitrary<Operation> = fc.oneof(
  often({
    kind: fc.constant('create'),
    seconds,
    body: fc.tuple(fc.record({ name, url }), flags).map(merge),
  }),
  fc.record({
    kind: fc.constant('update'),
    seconds,
    index,
    body: fc.tuple(fc.record({ name, url }, { requiredKeys: [] }), flags).map(merge),
  }),
  fc.record({ kind: fc.constant('delete'), seconds, index }),
  often({
    kind: fc.constant('list'),
    seconds,
    query: query(['created_at', 'name', 'url'], fc.oneof({ weight: 3, arbitrary: fc.constant({}) }, flags)),
  }),
)

const keyOperation: fc.Arbitrary<Operation> = fc.oneof(
  often({
    kind: fc.constant('create'),
    seconds,
    body: fc
      .tuple(fc.record({ api_key_name: name }), fc.record({ ttl: fc.constantFrom(60, 3_600) }, { requiredKeys: [] }))
      .map(merge),
  }),
  fc.record({ kind: fc.constant('update'), seconds, index, body: fc.record({ api_key_name: name }) }),
  fc.record({ kind: fc.constant('delete'), seconds, index }),
  often({ kind: fc.constant('list'), seconds, query: query(['created_at', 'name'], fc.constant({})) }),
)

function merge(parts: readonly Fields[]): Fields {
  return Object.assign({}, ...parts)
}

/** Computes the page that a query should show, step by step. */
function page(records: Model['records'], { offset = 0, limit = 25, sort_by, order_by, search, ...filter }: Fields) {
  const matching = records.filter(
    (record) =>
      String(record['name'])
        .toLowerCase()
        .includes(String(search ?? '').toLowerCase()) &&
      Object.keys(filter).every((field) => record[field] === filter[field]),
  )
  const key = (record: Fields) => String(record[String(sort_by ?? 'created_at')])
  const sorted = matching.map((record, place) => ({ record, place }))
  sorted.sort((a, b) => (key(a.record) === key(b.record) ? a.place - b.place : key(a.record) < key(b.record) ? -1 : 1))
  const ordered = (order_by === 'desc' ? sorted.reverse() : sorted).map(({ record }) => record)
  return { items: ordered.slice(Number(offset), Number(offset) + Number(limit)), total: matching.length }
}

/** Runs an operation over HTTP and in the model, and expects the same result. */
async function play(operation: Operation, model: Model, { call, pass }: Awaited<ReturnType<typeof serveApi>>) {
  pass(operation.seconds)
  const { profile, path, singular, plural } = model
  if (operation.kind === 'list') {
    const search = new URLSearchParams(operation.query as Record<string, string>)
    const { status, body } = await call('GET', `${path}?${search}`)
    const { items, total } = page(model.records, operation.query)
    expect([status, body]).toEqual([200, { status: 'success', data: { [plural]: items, total } }])
  } else if (operation.kind === 'create') {
    const { status, body } = await call('POST', path, operation.body)
    const needsEvent = singular === 'webhook' && profile === 'observed'
    const possible = !needsEvent || subscriptionFlags.some((flag) => operation.body[flag])
    expect(status).toBe(possible ? 201 : 400)
    if (!possible) return
    const { secret, ...record } = body.data[singular]
    model.records.push(record)
  } else {
    const target = model.records[operation.index]
    const method = operation.kind === 'update' ? 'PATCH' : 'DELETE'
    const body = operation.kind === 'update' ? operation.body : undefined
    const { status } = await call(method, `${path}/${target?.id ?? aUuid}`, body)
    expect(status).toBe(target === undefined ? 404 : 200)
    if (target === undefined) return
    if (operation.kind === 'delete') model.records.splice(operation.index, 1)
    else Object.assign(target, changes(operation.body), { updated_at: expect.any(String) })
  }
}

const changes = ({ api_key_name, ...fields }: Fields): Fields =>
  api_key_name === undefined ? fields : { name: api_key_name }

describe.each(profiles)('with the profile %s', (profile) => {
  test.each([
    ['webhooks', 'webhook', '/webhooks', webhookOperation],
    ['api_keys', 'api_key', '/api_keys', keyOperation],
  ])(
    'any sequence of operations on %s leaves lists, totals, filters, sorting and paging as a simple model has them',
    async (plural, singular, path, operation) => {
      await fc.assert(
        fc.asyncProperty(fc.array(operation, { minLength: 20, maxLength: 40 }), async (operations) => {
          const api = await serveApi({ profile })
          const model: Model = { profile, path, plural, singular, records: [] }
          for (const one of operations) await play(one, model, api)
        }),
        { numRuns: 10 },
      )
    },
  )
})
