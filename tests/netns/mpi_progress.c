// mpi_progress RANK DIR: rank 0 sends a long message to rank 1, which posts a receive and then makes no call of
// libfabric until rank 0 has seen the message's end. This ends only with automatic progress. Files in DIR connect them.
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { BYTES = 1 << 20, ADDRESS = 64 };

static const char *dir;
static unsigned char data[BYTES];

static void ok(int status, const char *what)
{
    if (status < 0) {
        fprintf(stderr, "%s: %s\n", what, fi_strerror(-status));
        exit(1);
    }
}

static const char *path(const char *name, int rank)
{
    static char text[4096];
    snprintf(text, sizeof text, "%s/%s.%d", dir, name, rank);
    return text;
}

// Writes a file that appears together with its contents.
static void write_file(const char *name, int rank, const void *what, size_t len)
{
    char final[4096];
    snprintf(final, sizeof final, "%s", path(name, rank));
    FILE *file = fopen(path("new", rank), "w");
    if (!file || fwrite(what, 1, len, file) != len || fclose(file) || rename(path("new", rank), final))
        ok(-FI_EIO, "file");
}

static void await(const char *name, int rank, void *what, size_t len)
{
    FILE *file;
    while (!(file = fopen(path(name, rank), "r")))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (fread(what, 1, len, file) != len)
        ok(-FI_EIO, "file");
    fclose(file);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    int rank = atoi(argv[1]);
    dir = argv[2];
    struct fi_info *hints = fi_allocinfo(), *info;
    hints->caps = FI_TAGGED;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
    hints->fabric_attr->prov_name = strdup("phitwire");
    ok(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "fi_getinfo");

    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_ep *ep;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC};
    ok(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
    ok(fi_domain(fabric, info, &domain, NULL), "fi_domain");
    ok(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
    ok(fi_av_open(domain, &(struct fi_av_attr){.type = FI_AV_TABLE}, &av, NULL), "fi_av_open");
    ok(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
    ok(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
    ok(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    ok(fi_enable(ep), "fi_enable");

    unsigned char address[ADDRESS] = {0};
    size_t len = sizeof address;
    ok(fi_getname(&ep->fid, address, &len), "fi_getname");
    write_file("address", rank, address, sizeof address);
    await("address", 1 - rank, address, sizeof address);
    fi_addr_t peer;
    if (fi_av_insert(av, address, 1, &peer, 0, NULL) != 1)
        ok(-FI_EINVAL, "fi_av_insert");

    struct fi_cq_tagged_entry entry;
    char mark;
    if (rank == 0) {
        for (int n = 0; n < BYTES; n++)
            data[n] = n * 7 + n / 256;
        await("posted", 1, &mark, 1);
        ok(fi_tsend(ep, data, BYTES, NULL, peer, 1, NULL), "fi_tsend");
        ok(fi_cq_sread(cq, &entry, 1, NULL, -1), "fi_cq_sread");
        write_file("sent", 0, "x", 1);
    } else {
        ok(fi_trecv(ep, data, BYTES, NULL, peer, 1, 0, NULL), "fi_trecv");
        write_file("posted", 1, "x", 1);
        clock_t begin = clock();
        await("sent", 0, &mark, 1);
        double took = (double)(clock() - begin) / CLOCKS_PER_SEC;
        ok(fi_cq_sread(cq, &entry, 1, NULL, -1), "fi_cq_sread");
        for (int n = 0; n < BYTES; n++)
            if (data[n] != (unsigned char)(n * 7 + n / 256))
                ok(-FI_EIO, "wrong data");
        printf("received %zu bytes without a call, %.0f ms of processor time\n", entry.len, took * 1e3);
    }
    fi_close(&ep->fid);
    fi_close(&cq->fid);
    fi_close(&av->fid);
    fi_close(&domain->fid);
    fi_close(&fabric->fid);
    fi_freeinfo(info);
    fi_freeinfo(hints);
    return 0;
}
