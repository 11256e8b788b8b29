import { expect, test } from 'vitest'
import { list } from '../../../../src/service/emulator/workspace/list.ts'

const record = (name: string, created_at: string, wanted = true) => ({ name, created_at, wanted })
const items = [record('b', '2'), record('a', '1'), record('B', '1'), record('a', '3', false)]
const names = (query: Parameters<typeof list<(typeof items)[number]>>[1]) =>
  list(items, query).items.map(({ name, created_at }) => name + created_at)

test('a list is sorted by the time of creation, and then by the order of creation', () => {
  expect(names({})).toEqual(['a1', 'B1', 'b2', 'a3'])
})

test('a descending list is the ascending one reversed', () => {
  expect(names({ order_by: 'desc' })).toEqual(['a3', 'b2', 'B1', 'a1'])
  expect(names({ order_by: 'desc', sort_by: 'name' })).toEqual(['b2', 'a3', 'a1', 'B1'])
})

test('names are sorted by code unit: capital letters come first', () => {
  expect(names({ sort_by: 'name' })).toEqual(['B1', 'a1', 'a3', 'b2'])
})

test('a search ignores case', () => {
  expect(names({ search: 'b' })).toEqual(['B1', 'b2'])
  expect(names({ search: '.' })).toEqual([])
})

test('the fields of a query have to equal those of a record', () => {
  expect(names({ wanted: false })).toEqual(['a3'])
  expect(names({ wanted: true, search: 'A' })).toEqual(['a1'])
})

test('the total counts all matching records, on every page', () => {
  expect(list(items, { wanted: true, offset: 1, limit: 1 })).toMatchObject({ items: [{ name: 'B' }], total: 3 })
  expect(list(items, { offset: 10 })).toEqual({ items: [], total: 4 })
})

test('a page holds 25 records by default', () => {
  const many = Array.from({ length: 30 }, (_, index) => record('x', String(index + 10)))
  expect(list(many, {}).items).toEqual(many.slice(0, 25))
  expect(list(many, { limit: 30 }).items).toEqual(many)
})
