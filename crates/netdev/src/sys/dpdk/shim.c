/* The few DPDK calls that Weir needs, behind plain functions.
 *
 * DPDK's fast calls are inline and its structures change from release to release; here they are
 * compiled against the headers of the machine, and Rust sees neither. All functions that may fail
 * return a negative errno. Nothing here may keep state of its own but the thread registration. */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

/* A frame's buffer as Rust lays it out: `packet::ExternalBuf`. */
struct weir_frame {
    uint8_t *base;     /* where its memory begins */
    uint32_t start;    /* where the frame begins, from base */
    uint32_t len;      /* its length */
    void *object;      /* the mbuf */
    const void *owner; /* whose it is; another's is no mbuf */
};

/* What a burst was. */
struct weir_burst {
    uint64_t bytes;
    uint64_t odd; /* bit n: frame n is in several pieces, or others hold it too */
};

struct weir_facts {
    uint8_t mac[6];
    uint16_t mtu;
    uint32_t speed_mbps; /* 0 for unknown */
    uint8_t link_up;
    uint8_t full_duplex;
    uint8_t pad[2];
};

struct weir_losses {
    uint64_t rx_missed;
    uint64_t rx_errors;
    uint64_t tx_errors;
};

/* The most queues of a device. */
struct weir_queues {
    uint16_t rx;
    uint16_t tx;
};

/* What tells flows apart where a device gives each to one queue: addresses and ports. */
#define FLOW_TYPES (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_SCTP)

static pthread_key_t registered;
static pthread_once_t registered_once = PTHREAD_ONCE_INIT;

static void unregister(void *value)
{
    (void)value;
    rte_thread_unregister();
}

static void make_key(void)
{
    (void)pthread_key_create(&registered, unregister);
}

/* A thread that DPDK does not know has no cache in front of the buffer pool: a rx call would cost
 * several times as much. It stays registered until it ends. */
static void register_thread(void)
{
    pthread_once(&registered_once, make_key);
    if (rte_thread_register() == 0)
        (void)pthread_setspecific(registered, &registered);
}

static inline void know_thread(void)
{
    if (unlikely(rte_lcore_id() == LCORE_ID_ANY))
        register_thread();
}

/* DPDK makes a folder for its files even where it is told to have none: an empty one goes again, and
 * so does the one above it. */
static void remove_empty_folder(void)
{
    char path[4096];
    char *last;

    snprintf(path, sizeof(path), "%s", rte_eal_get_runtime_dir());
    last = strrchr(path, '/');
    if (rmdir(path) == 0 && last != NULL) {
        *last = '\0';
        (void)rmdir(path);
    }
}

int weir_dpdk_init(int argc, char **argv)
{
    if (rte_eal_init(argc, argv) < 0)
        return -rte_errno;
    remove_empty_folder();
    return 0;
}

void *weir_dpdk_pool(const char *name, uint32_t count)
{
    return rte_pktmbuf_pool_create(name, count, 512, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
                                   SOCKET_ID_ANY);
}

/* Makes the device of these devargs, if there is none yet, and tells its number. */
int weir_dpdk_attach(const char *devargs)
{
    struct rte_dev_iterator iterator;
    int found = -ENODEV, port, failed = rte_dev_probe(devargs);

    if (failed < 0)
        return failed;
    RTE_ETH_FOREACH_MATCHING_DEV(port, devargs, &iterator) {
        found = port;
        rte_eth_iterator_cleanup(&iterator);
        break;
    }
    return found;
}

int weir_dpdk_detach(uint16_t port)
{
    struct rte_eth_dev_info info;
    int failed = rte_eth_dev_info_get(port, &info);

    (void)rte_eth_dev_stop(port);
    if (failed == 0)
        failed = rte_eth_dev_close(port);
    if (failed == 0)
        failed = rte_dev_remove(info.device);
    return failed;
}

/* Starts a device with as many queue pairs, -ERANGE where it has fewer: `most` tells how many. Where
 * it can, the device gives each flow to one queue; where not, who sends decides. */
int weir_dpdk_start(uint16_t port, uint16_t queues, void *pool, struct weir_queues *most)
{
    struct rte_eth_conf conf;
    struct rte_eth_dev_info info;
    uint16_t rx_slots = 1024, tx_slots = 1024, queue;
    int failed = rte_eth_dev_info_get(port, &info);

    memset(&conf, 0, sizeof(conf));
    memset(most, 0, sizeof(*most));
    if (failed < 0)
        return failed;
    most->rx = info.max_rx_queues;
    most->tx = info.max_tx_queues;
    if (queues > info.max_rx_queues || queues > info.max_tx_queues)
        return -ERANGE;
    conf.rx_adv_conf.rss_conf.rss_hf = info.flow_type_rss_offloads & FLOW_TYPES;
    if (queues > 1 && conf.rx_adv_conf.rss_conf.rss_hf != 0)
        conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    else
        conf.rx_adv_conf.rss_conf.rss_hf = 0;
    failed = rte_eth_dev_configure(port, queues, queues, &conf);
    if (failed == 0)
        failed = rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx_slots, &tx_slots);
    for (queue = 0; failed == 0 && queue < queues; queue++) {
        failed = rte_eth_tx_queue_setup(port, queue, tx_slots, SOCKET_ID_ANY, NULL);
        if (failed == 0)
            failed = rte_eth_rx_queue_setup(port, queue, rx_slots, SOCKET_ID_ANY, NULL, pool);
    }
    if (failed == 0)
        failed = rte_eth_dev_start(port);
    if (failed == 0)
        (void)rte_eth_promiscuous_enable(port); /* virtual devices mostly know no such mode */
    return failed;
}

static inline void tell(struct weir_frame *out, struct rte_mbuf *m, const void *owner)
{
    out->base = m->buf_addr;
    out->start = m->data_off;
    out->len = m->data_len;
    out->object = m;
    out->owner = owner;
}

/* Whether a frame is in one piece of its own memory, and nobody else holds it: where the frame
 * begins, the holders and the pieces stand in one word. */
static inline int is_odd(const struct rte_mbuf *m)
{
    uint64_t word;

    memcpy(&word, &m->rearm_data, sizeof(word));
    word >>= 8 * (offsetof(struct rte_mbuf, refcnt) - offsetof(struct rte_mbuf, rearm_data));
    return (uint32_t)word != ((uint32_t)1 << 16 | 1) || !RTE_MBUF_DIRECT(m);
}

_Static_assert(offsetof(struct rte_mbuf, nb_segs) == offsetof(struct rte_mbuf, refcnt) + 2,
               "holders and pieces stand side by side");

/* A frame in one piece that nobody else holds is handed over as it lies; of others `odd` tells. */
uint16_t weir_dpdk_rx(uint16_t port, uint16_t queue, struct weir_frame *out, uint16_t max,
                      const void *owner, struct weir_burst *burst)
{
    struct rte_mbuf *mbufs[64];
    uint64_t bytes = 0, odd = 0;
    uint16_t count, i;

    know_thread();
    count = rte_eth_rx_burst(port, queue, mbufs, RTE_MIN(max, (uint16_t)64));
    for (i = 0; i < count; i++) {
        struct rte_mbuf *m = mbufs[i];

        tell(&out[i], m, owner);
        bytes += m->pkt_len;
        if (unlikely(is_odd(m)))
            odd |= UINT64_C(1) << i;
    }
    burst->bytes = bytes;
    burst->odd = odd;
    return count;
}

/* Sends a prefix; what is not sent still belongs to the caller. Stops at a frame of others. */
uint16_t weir_dpdk_tx(uint16_t port, uint16_t queue, const struct weir_frame *frames,
                      uint16_t count, const void *owner, struct weir_burst *burst)
{
    struct rte_mbuf *mbufs[64];
    uint64_t bytes = 0;
    uint16_t i, sent;

    know_thread();
    count = RTE_MIN(count, (uint16_t)64);
    for (i = 0; i < count && frames[i].owner == owner; i++) {
        struct rte_mbuf *m = frames[i].object;

        m->data_off = frames[i].start;
        m->data_len = frames[i].len;
        m->pkt_len = frames[i].len;
        bytes += frames[i].len;
        mbufs[i] = m;
    }
    count = i;
    sent = rte_eth_tx_burst(port, queue, mbufs, count);
    for (i = sent; i < count; i++)
        bytes -= frames[i].len;
    burst->bytes = bytes;
    burst->odd = 0;
    return sent;
}

/* An empty mbuf, or 0. */
int weir_dpdk_alloc(void *pool, struct weir_frame *out, const void *owner)
{
    struct rte_mbuf *m;

    know_thread();
    m = rte_pktmbuf_alloc(pool);
    if (m == NULL)
        return 0;
    tell(out, m, owner);
    return 1;
}

void weir_dpdk_free(void *object)
{
    know_thread();
    rte_pktmbuf_free(object);
}

uint32_t weir_dpdk_room(const void *object)
{
    return ((const struct rte_mbuf *)object)->buf_len;
}

uint32_t weir_dpdk_len(const void *object)
{
    return ((const struct rte_mbuf *)object)->pkt_len;
}

/* Copies a frame of any form; `to` has room for its length. */
void weir_dpdk_copy(const void *object, uint8_t *to)
{
    const struct rte_mbuf *m = object;

    for (; m != NULL; m = m->next) {
        memcpy(to, rte_pktmbuf_mtod(m, const void *), m->data_len);
        to += m->data_len;
    }
}

int weir_dpdk_facts(uint16_t port, struct weir_facts *out)
{
    struct rte_eth_link link;
    struct rte_ether_addr mac;

    memset(out, 0, sizeof(*out));
    if (!rte_eth_dev_is_valid_port(port) || rte_eth_macaddr_get(port, &mac) != 0)
        return -ENODEV;
    memcpy(out->mac, mac.addr_bytes, sizeof(out->mac));
    (void)rte_eth_dev_get_mtu(port, &out->mtu);
    memset(&link, 0, sizeof(link));
    (void)rte_eth_link_get_nowait(port, &link);
    out->link_up = link.link_status == RTE_ETH_LINK_UP;
    out->full_duplex = link.link_duplex == RTE_ETH_LINK_FULL_DUPLEX;
    out->speed_mbps = link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link.link_speed;
    return 0;
}

int weir_dpdk_losses(uint16_t port, struct weir_losses *out)
{
    struct rte_eth_stats stats;
    int failed = rte_eth_stats_get(port, &stats);

    memset(out, 0, sizeof(*out));
    if (failed != 0)
        return failed;
    out->rx_missed = stats.imissed + stats.rx_nombuf;
    out->rx_errors = stats.ierrors;
    out->tx_errors = stats.oerrors;
    return 0;
}
