import { createRequire } from 'node:module'

// Redis' Lua in JavaScript: our scripts run as they are, deterministically and without a server.

/** Runs a command of Redis for a script. */
export type Call = (command: string, ...parameters: string[]) => string | number | null

type State = { readonly state: unique symbol }

/** The part of the library that is used. It has no types of its own. */
interface Fengari {
  to_luastring(text: string): Uint8Array
  readonly lua: {
    readonly LUA_REGISTRYINDEX: number
    lua_pushstring(state: State, text: Uint8Array): void
    lua_pushnumber(state: State, number: number): void
    lua_pushboolean(state: State, value: boolean): void
    lua_pushjsfunction(state: State, run: (state: State) => number): void
    lua_createtable(state: State, items: number, fields: number): void
    lua_rawseti(state: State, table: number, index: number): void
    lua_rawgeti(state: State, table: number, index: number): void
    lua_setfield(state: State, table: number, name: Uint8Array): void
    lua_setglobal(state: State, name: Uint8Array): void
    lua_gettop(state: State): number
    lua_settop(state: State, top: number): void
    lua_isnumber(state: State, index: number): boolean
    lua_tonumber(state: State, index: number): number
    lua_tojsstring(state: State, index: number): string
    lua_pcall(state: State, parameters: number, results: number, handler: number): number
  }
  readonly lauxlib: {
    luaL_newstate(): State
    luaL_loadstring(state: State, script: Uint8Array): number
    luaL_ref(state: State, table: number): number
  }
  readonly lualib: { luaL_openlibs(state: State): void }
}

const { lua, lauxlib, lualib, to_luastring: bytes } = createRequire(import.meta.url)('fengari') as Fengari

const state = lauxlib.luaL_newstate()
lualib.luaL_openlibs(state)

/** The place of each compiled script. */
const compiled = new Map<string, number>()
let onCall: Call = () => null

lua.lua_createtable(state, 0, 1)
lua.lua_pushjsfunction(state, () => {
  const parameters = Array.from({ length: lua.lua_gettop(state) }, (_, i) => lua.lua_tojsstring(state, i + 1))
  const answer = onCall(...(parameters as [string, ...string[]]))
  // Redis' nil is Lua's false.
  if (answer === null) lua.lua_pushboolean(state, false)
  else if (typeof answer === 'number') lua.lua_pushnumber(state, answer)
  else lua.lua_pushstring(state, bytes(answer))
  return 1
})
lua.lua_setfield(state, -2, bytes('call'))
lua.lua_setglobal(state, bytes('redis'))

/** Runs a script to its end. Throws the script's error. */
export function runScript(script: string, keys: readonly string[], parameters: readonly string[], call: Call) {
  onCall = call
  setList('KEYS', keys)
  setList('ARGV', parameters)
  lua.lua_rawgeti(state, lua.LUA_REGISTRYINDEX, compiledScript(script))
  check(lua.lua_pcall(state, 0, 1, 0))
  const answer = lua.lua_isnumber(state, -1) ? lua.lua_tonumber(state, -1) : lua.lua_tojsstring(state, -1)
  lua.lua_settop(state, 0)
  return answer
}

function compiledScript(script: string): number {
  const known = compiled.get(script)
  if (known !== undefined) return known
  check(lauxlib.luaL_loadstring(state, bytes(script)))
  const place = lauxlib.luaL_ref(state, lua.LUA_REGISTRYINDEX)
  compiled.set(script, place)
  return place
}

function setList(name: string, items: readonly string[]): void {
  lua.lua_createtable(state, items.length, 0)
  for (const [index, item] of items.entries()) {
    lua.lua_pushstring(state, bytes(item))
    lua.lua_rawseti(state, -2, index + 1)
  }
  lua.lua_setglobal(state, bytes(name))
}

function check(status: number): void {
  if (status === 0) return
  const message = lua.lua_tojsstring(state, -1)
  lua.lua_settop(state, 0)
  throw new Error(message)
}
