import { describe, expect, test } from 'vitest'
import { type Scripted, serve } from './scripted-service.ts'

interface Item {
  id: string
  name: string
}

const items = (count: number): Item[] => Array.from({ length: count }, (_, index) => ({ id: `w${index}`, name: 'n' }))

/** Serves the webhooks of a list that can change. `total` turns the true total into the one that is sent. */
function listing(
  list: { items: Item[] },
  { total = (count: number) => count as unknown, maxPage = 100 } = {},
): Scripted {
  return ({ url }, response) => {
    const { searchParams } = new URL(url ?? '', 'http://127.0.0.1')
    const [offset, limit] = ['offset', 'limit'].map((name) => Number(searchParams.get(name))) as [number, number]
    const webhooks = list.items.slice(offset, offset + Math.min(limit, maxPage))
    response.end(JSON.stringify({ status: 'success', data: { webhooks, total: total(list.items.length) } }))
  }
}

async function everyId(service: Awaited<ReturnType<typeof serve>>, visit: (id: string) => void = () => {}) {
  const ids: string[] = []
  for await (const { id } of service.client.webhook.listAll()) {
    ids.push(id)
    visit(id)
  }
  return ids
}

const idsOf = (list: readonly Item[]) => list.map(({ id }) => id)

describe('listAll', () => {
  test.each([
    [0, 1],
    [1, 1],
    [99, 1],
    [100, 2],
    [101, 2],
    [250, 3],
  ])('yields each of %d items once, in %d requests', async (count, requests) => {
    const all = items(count)
    const service = await serve(listing({ items: all }))
    expect(await everyId(service)).toEqual(idsOf(all))
    expect(service.requests).toHaveLength(requests)
  })

  test('asks for the largest pages, oldest first, and passes on the filter and the order', async () => {
    const { client, requests } = await serve({ body: { data: { webhooks: [], api_keys: [], total: 0 } } })
    for await (const _ of client.webhook.listAll({ search: 'prod', encodingFinished: true })) expect.fail()
    for await (const _ of client.apiKey.listAll({ sortBy: 'name', orderBy: 'desc' })) expect.fail()
    const [webhooks, apiKeys] = requests.map(({ url }) => Object.fromEntries(new URL(url, 'http://x').searchParams))
    expect(webhooks).toEqual({
      search: 'prod',
      encoding_finished: 'true',
      sort_by: 'created_at',
      order_by: 'asc',
      offset: '0',
      limit: '100',
    })
    expect(apiKeys).toEqual({ sort_by: 'name', order_by: 'desc', offset: '0', limit: '100' })
  })

  test('yields every API key', async () => {
    const { client } = await serve({ body: { data: { api_keys: [{ id: 'k1' }, { id: 'k2' }], total: 2 } } })
    const ids: string[] = []
    for await (const { id } of client.apiKey.listAll()) ids.push(id)
    expect(ids).toEqual(['k1', 'k2'])
  })

  test('fetches no page before it is needed', async () => {
    const { client, requests } = await serve(listing({ items: items(500) }))
    const all = client.webhook.listAll()
    expect(requests).toHaveLength(0)
    for await (const { id } of all) if (id === 'w99') break
    expect(requests).toHaveLength(1)
  })

  test.each([
    ['too low', (count: number) => count - 200],
    ['too high', (count: number) => count + 10_000],
    ['missing', () => undefined],
    ['null', () => null],
  ])('yields every item, and ends, when the total is %s', async (_, total) => {
    const all = items(250)
    const service = await serve(listing({ items: all }, { total }))
    expect(await everyId(service)).toEqual(idsOf(all))
    expect(service.requests.length).toBeLessThanOrEqual(4)
  })

  test.each([
    [25, 'a total', (count: number) => count],
    [25, 'no total', () => undefined],
    [2, 'no total', () => undefined],
    [1, 'a total', (count: number) => count],
    [1, 'no total', () => undefined],
    [25, 'a total that is too high', (count: number) => count + 1],
    [25, 'a total that is too low', (count: number) => count - 50],
  ])('yields every item of a service with pages of %d and %s', async (maxPage, _, total) => {
    const all = items(60)
    const service = await serve(listing({ items: all }, { maxPage, total }))
    expect(await everyId(service)).toEqual(idsOf(all))
    expect(service.requests.length).toBeLessThanOrEqual(Math.ceil(60 / Math.max(maxPage - 1, 1)) + 1)
  })

  test.each([
    ['always the same page', { items: items(100) }],
    ['one item a hundred times', { items: Array(100).fill({ id: 'w0', name: 'n' }) as Item[] }],
    ['one item and a total', { items: items(1) }],
  ])('ends when the service returns %s', async (_, page) => {
    const service = await serve({ body: { data: { webhooks: page.items, total: 1_000_000 } } })
    expect(await everyId(service)).toEqual([...new Set(idsOf(page.items))])
    expect(service.requests.length).toBeLessThanOrEqual(5)
  })

  test.each([
    ['every item', () => true],
    ['every other item', (id: string) => Number(id.slice(1)) % 2 === 0],
    ['the last item of each page', (id: string) => id.endsWith('99')],
  ])('skips no item when %s is deleted during the iteration', async (_, isDeleted) => {
    const all = items(350)
    const list = { items: all }
    const service = await serve(listing(list))
    const ids = await everyId(service, (id) => {
      if (isDeleted(id)) list.items = list.items.filter((item) => item.id !== id)
    })
    expect(ids.toSorted()).toEqual(idsOf(all).toSorted())
  })

  test('skips no item when items are added during the iteration', async () => {
    const list = { items: items(150) }
    const service = await serve(listing(list))
    const ids = await everyId(service, (id) => {
      if (id === 'w50') list.items = [...list.items, { id: 'new', name: 'n' }]
    })
    expect(ids).toEqual([...idsOf(items(150)), 'new'])
  })
})
