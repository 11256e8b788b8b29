export default defineNitroPlugin(async ({ hooks }) => {
  // Opens the receiver now, not at the first delivery, to handle events an earlier process left.
  await mediaReceiver().ready()
  // After SIGTERM, Nitro stops listening, answers the requests in flight, and then calls this hook.
  hooks.hook('close', async () => void (await mediaReceiver().close()))
})
